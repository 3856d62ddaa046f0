"""Values of any of our types: by chance (`values_of`, for hypothesis) and fixed (`example_of`, for snapshots).

Both read the types themselves, so that a field that is added later is covered without a word here.
"""

from __future__ import annotations

import enum
import os
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NewType, TypeVar

import msgspec
from hypothesis import settings
from hypothesis import strategies as st

T = TypeVar("T")

SOAK = os.environ.get("COUNTERFOIL_SOAK") == "1"
"""The long form of the tests: twenty times the examples, and other ones each time."""


def examples(count: int) -> settings:
    """So many examples of a property in the short form, which are the same each time."""
    return settings(max_examples=count * 20 if SOAK else count, derandomize=not SOAK, deadline=None)


def fields_of(struct: type) -> dict[str, Any]:
    """The fields of a struct type with their types."""
    hints = typing.get_type_hints(struct)
    return {f.name: hints[f.name] for f in msgspec.structs.fields(struct)}


def required(struct: type) -> set[str]:
    """The fields that have no default."""
    return {f.name for f in msgspec.structs.fields(struct) if f.required}


def json_values() -> st.SearchStrategy[Any]:
    """Values that JSON can hold, whole numbers beyond 64 bits among them."""
    leaves = (
        st.none()
        | st.booleans()
        | st.integers(-(2**80), 2**80)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8)
    )
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    )


def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects."""
    return st.dictionaries(st.text(max_size=6), json_values(), max_size=4)


@cache
def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of the type `hint`."""
    if isinstance(hint, NewType):
        return values_of(hint.__supertype__)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return st.deferred(lambda: _structs(hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(list(hint))
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([values_of(arg) for arg in args])
    if origin is tuple:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is dict:
        return json_objects()
    return _PLAIN[hint]()


def _structs(struct: type) -> st.SearchStrategy[Any]:
    fields, must = fields_of(struct), required(struct)
    return st.fixed_dictionaries(
        {name: values_of(hint) for name, hint in fields.items() if name in must},
        optional={name: values_of(hint) for name, hint in fields.items() if name not in must},
    ).map(lambda values: struct(**values))


def _raw() -> st.SearchStrategy[msgspec.Raw]:
    texts = json_values().map(msgspec.json.encode)
    return texts.map(lambda text: msgspec.Raw(b'{ "a" : ' + text + b"  }"))


_PLAIN: dict[Any, Callable[[], st.SearchStrategy[Any]]] = {
    str: lambda: st.text(max_size=12),
    int: lambda: st.integers(-(2**63), 2**63 - 1),
    float: lambda: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans,
    type(None): st.none,
    msgspec.Raw: _raw,
}


def example_of(hint: Any, name: str = "", *, full: bool = True) -> Any:
    """The one fixed value of the type `hint`: with all of its fields set (`full`), or the required ones."""
    if isinstance(hint, NewType):
        return example_of(hint.__supertype__, name, full=full)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        fields, must = fields_of(hint), required(hint)
        return hint(**{n: example_of(h, n, full=full) for n, h in fields.items() if full or n in must})
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return list(hint)[1]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return args[-1]
    if origin in (typing.Union, types.UnionType):
        return example_of(next(arg for arg in args if arg is not type(None)), name, full=full)
    if origin is tuple:
        kinds = typing.get_args(args[0]) if typing.get_origin(args[0]) in (typing.Union, types.UnionType) else args[:1]
        return tuple(example_of(kind, name, full=full) for kind in kinds)
    if origin is dict:
        return {"b": [1, 2.5, None, True], "a": {"text": "é\u2028"}}
    return {str: name, int: 7, float: 0.5, bool: True, msgspec.Raw: msgspec.Raw(b'{ "raw" : 1 }')}[hint]
