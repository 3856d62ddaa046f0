"""What a hook said, by the contract: exit code, standard output and error, or an HTTP answer. Pure."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Collection
from typing import Any, Literal

import msgspec

from counterfoil.events.codec import clean_text, loads
from counterfoil.hooks.definition import HookDefinition
from counterfoil.policy.hook_rules import RulesAnswer, asked_for
from counterfoil.ports import HookAnswer

OUTPUT_BYTES = 1024 * 1024
"""More output than this is cut, with a warning."""

_PLAIN_IS_CONTEXT = frozenset({"SessionStart", "UserPromptSubmit"})
_NO_BLOCK = frozenset(
    {"SessionStart", "PermissionDenied", "PostToolUseFailure", "Notification", "SubagentStart", "StopFailure"}
    | {"PostCompact", "SessionEnd"}
)
_TOP = frozenset(
    {"continue", "stopReason", "suppressOutput", "systemMessage", "decision", "reason", "hookSpecificOutput"}
)
_SPECIFIC: dict[str, frozenset[str]] = {
    "PreToolUse": frozenset({"permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"}),
    "PermissionRequest": frozenset({"decision"}),
    "PostToolUse": frozenset({"additionalContext", "updatedToolOutput"}),
    "PermissionDenied": frozenset({"retry"}),
    **dict.fromkeys(
        ("SessionStart", "UserPromptSubmit", "SubagentStart", "PostToolUseFailure", "PostToolBatch", "Stop"),
        frozenset({"additionalContext"}),
    ),
}
"""The fields of `hookSpecificOutput` that each phase has a use for."""
_REQUEST = frozenset({"behavior", "message", "interrupt", "updatedInput", "updatedPermissions"})
_DECISIVE = frozenset({"permissiondecision", "behavior", "updatedinput", "updatedtooloutput", "decision"})
"""In the wrong place these make the output a fault: the hook meant to decide something."""
_BEFORE_JSON = frozenset({"hookSpecificOutput", "decision", "continue", "permissionDecision"})
_LINES = 64


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """The raw outcome of a command: exit code, and output as bytes, with how much of it was cut."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    cut: int = 0


class _Fault(Exception):
    """The output isn't what the contract says."""


def from_command(definition: HookDefinition, said: Said) -> HookAnswer:
    """The answer of a command that ended. Exit 0: go on; 2: block; any other: the hook failed."""
    base = answer(definition, exit_code=said.exit_code, warnings=_cut_warning(said.cut))
    error = said.stderr.decode("utf-8", "replace").strip()
    if said.exit_code == 2:
        return msgspec.structs.replace(base, blocked=True, reason=error or "blocked without a reason")
    if said.exit_code != 0:
        shown = f": {error[:500]}" if error else ""
        return msgspec.structs.replace(base, failure=f"{_ended(said.exit_code)}{shown}")
    return from_text(definition, base, said.stdout)


def from_text(definition: HookDefinition, base: HookAnswer, output: bytes) -> HookAnswer:
    """The answer in the output of a hook that ended well: JSON, or plain text."""
    text = output.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    if not text:
        return base
    try:
        if not text.startswith("{"):
            _no_json_behind(text)
            context = clean_text(text) if definition.phase in _PLAIN_IS_CONTEXT else ""
            return msgspec.structs.replace(base, additional_context=context)
        value = loads(text)
        if not isinstance(value, dict):
            raise _Fault("the output is not a JSON object")
        _no_key_twice(text)
        return _read(definition, base, value)
    except _Fault as fault:
        return msgspec.structs.replace(base, failure=str(fault))
    except (ValueError, RecursionError) as fault:
        return msgspec.structs.replace(base, failure=f"the output begins like JSON and is not: {str(fault)[:200]}")


def _no_json_behind(text: str) -> None:
    """Text before an answer, of a shell's start-up file say, must not hide the answer."""
    decoder, at = json.JSONDecoder(), 0
    for _ in range(_LINES):
        at = text.find("\n{", at) + 1
        if at == 0:
            return
        try:
            value, _end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and not _BEFORE_JSON.isdisjoint(value):
            raise _Fault("text stands before the JSON object of the output: it must stand alone")


def _no_key_twice(text: str) -> None:
    """Of a key that is there twice one value would be lost, and it may be a denial."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = next(k for n, (k, _) in enumerate(pairs) if k in dict(pairs[:n]))
            raise _Fault(f"`{clean_text(twice)[:100]}` is there twice in one object of the output")
        return found

    json.loads(text, object_pairs_hook=once)


def answer(definition: HookDefinition, **fields: Any) -> HookAnswer:
    """An answer of this hook with these fields."""
    return HookAnswer(definition=definition.record, on_failure=definition.on_failure, **fields)


def _cut_warning(cut: int) -> tuple[str, ...]:
    return (f"{cut} bytes of the output over {OUTPUT_BYTES} were left out",) if cut else ()


def _ended(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by signal {-code} ({signal.Signals(-code).name})"
        return f"ended by signal {-code}"
    if code == 127:
        return "the command was not found (exit 127)"
    if code == 126:
        return "the command can't be executed (exit 126)"
    return f"exit code {code}"


def _read(definition: HookDefinition, base: HookAnswer, value: dict[str, Any]) -> HookAnswer:
    fields: dict[str, Any] = {"warnings": base.warnings}
    phase = definition.phase
    _only(fields, value, _TOP | ({"retry"} if phase == "PermissionDenied" else set()), "the output")
    _take(fields, "proceed", value, "continue", bool)
    _take(fields, "stop_reason", value, "stopReason", str)
    _take(fields, "suppress_output", value, "suppressOutput", bool)
    _take(fields, "system_message", value, "systemMessage", str)
    if phase == "PermissionDenied":
        _take(fields, "retry", value, "retry", bool)
    _decision(phase, fields, value)
    specific = value.get("hookSpecificOutput")
    if specific is not None:
        _specific(definition, fields, specific)
    if "rules" in fields:
        base = RulesAnswer(**{name: getattr(base, name) for name in base.__struct_fields__})
    return msgspec.structs.replace(base, **fields)


def _decision(phase: str, fields: dict[str, Any], value: dict[str, Any]) -> None:
    """The `decision` of the whole output, and what it means for this phase."""
    reason = _text(value, "reason")
    decision = _choice(value, "decision", ("approve", "block", "allow", "deny"))
    if decision is None:
        return
    denies = decision in ("block", "deny")
    if phase == "PreToolUse":
        fields |= {"permission": "deny" if denies else "allow", "permission_reason": reason}
        _warn(fields, "`decision` of PreToolUse is deprecated: use `permissionDecision`")
    elif denies and phase in _NO_BLOCK:
        _warn(fields, f"`decision`: {phase} can't be blocked; {reason or 'no reason given'}"[:500])
    elif denies:
        fields |= {"blocked": True, "reason": reason or "blocked without a reason"}
    elif phase == "PermissionRequest":
        _warn(fields, "`decision` of PermissionRequest stands in `hookSpecificOutput`: nothing was allowed")


def _specific(definition: HookDefinition, fields: dict[str, Any], specific: Any) -> None:
    if not isinstance(specific, dict):
        raise _Fault("`hookSpecificOutput` is not an object")
    phase, name = definition.phase, specific.get("hookEventName")
    if name != phase:
        said = "has no `hookEventName`" if name is None else f"is for {clean_text(str(name))[:100]}"
        raise _Fault(f"`hookSpecificOutput` {said}; this is {phase}")
    known = _SPECIFIC.get(phase, frozenset())
    _only(fields, specific, known | {"hookEventName"}, f"`hookSpecificOutput` of {phase}")
    if "additionalContext" in known:
        _take(fields, "additional_context", specific, "additionalContext", str)
    if phase == "PreToolUse":
        chosen = _choice(specific, "permissionDecision", ("allow", "deny", "ask", "defer"))
        if chosen is not None and fields.get("permission") != "deny":
            fields["permission"] = chosen
        _take(fields, "permission_reason", specific, "permissionDecisionReason", str)
        _take(fields, "updated_input", specific, "updatedInput", dict)
    elif phase == "PermissionRequest":
        _request(fields, specific.get("decision"))
    elif phase == "PostToolUse":
        _take(fields, "updated_output", specific, "updatedToolOutput", str)
    elif phase == "PermissionDenied":
        _take(fields, "retry", specific, "retry", bool)


def _only(fields: dict[str, Any], value: dict[str, Any], known: Collection[str], where: str) -> None:
    """Say which fields aren't used. One that would decide something is a fault: it must not pass for a yes."""
    others = [name for name in value if name not in known]
    for name in others:
        if name.lower() in _DECISIVE:
            raise _Fault(f"{where} has `{clean_text(name)[:100]}`, which doesn't belong there")
    if others:
        shown = ", ".join(f"`{clean_text(name)[:40]}`" for name in others[:8])
        _warn(fields, f"{where} has fields that aren't used: {shown}" + (", …" if len(others) > 8 else ""))


def _warn(fields: dict[str, Any], text: str) -> None:
    fields["warnings"] = (*fields["warnings"], text)


def _request(fields: dict[str, Any], decision: Any) -> None:
    if decision is None:
        return
    if not isinstance(decision, dict):
        raise _Fault("`decision` is not an object")
    _only(fields, decision, _REQUEST, "`decision`")
    behavior = _choice(decision, "behavior", ("allow", "deny"))
    if behavior is None:
        raise _Fault("`decision` has no `behavior`")
    fields["request"] = behavior
    _take(fields, "request_message", decision, "message", str)
    _take(fields, "interrupt", decision, "interrupt", bool)
    if behavior == "allow":
        _take(fields, "updated_input", decision, "updatedInput", dict)
        _permissions(fields, decision.get("updatedPermissions"))
        return
    for name in ("updatedInput", "updatedPermissions"):
        if name in decision:
            _warn(fields, f"`{name}` beside a denial isn't used")


def _permissions(fields: dict[str, Any], updates: Any) -> None:
    """`updatedPermissions`: rules to allow, and nothing else. What else it asks for is said."""
    if updates is None:
        return
    if not isinstance(updates, list):
        raise _Fault("`updatedPermissions` is not a list")
    fields["rules"], others = asked_for(updates)
    if others:
        _warn(fields, f"`updatedPermissions`: not used: {', '.join(others)}")


def _take(
    fields: dict[str, Any],
    field: str,
    value: dict[str, Any],
    name: str,
    kind: type[bool] | type[str] | type[dict[str, Any]],
) -> None:
    found = value.get(name)
    if found is None:
        return
    if not isinstance(found, kind):
        raise _Fault(f"`{name}` is not a {'object' if kind is dict else kind.__name__}")
    fields[field] = found


def _text(value: dict[str, Any], name: str) -> str:
    found: dict[str, Any] = {}
    _take(found, name, value, name, str)
    return str(found.get(name, ""))


def _choice(value: dict[str, Any], name: str, choices: tuple[str, ...]) -> Literal["allow", "deny"] | str | None:
    found = value.get(name)
    if found is None:
        return None
    if found not in choices:
        raise _Fault(f"`{name}` is {str(found)[:100]!r} and not one of {', '.join(choices)}")
    return str(found)
