"""From tiers to settings: pure, later tiers over earlier ones, rules added up, every source kept."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.config.schema import Wire
from counterfoil.config.urls import url_fault
from counterfoil.config.values import (
    Assignment,
    ModelSettings,
    PermissionSettings,
    Problem,
    ProviderSettings,
    Rule,
    Settings,
    Source,
    Tier,
    ToolSettings,
    UiSettings,
)
from counterfoil.events import Limits
from counterfoil.hooks.definition import HookDefinition

_T = typing.TypeVar("_T", bound=msgspec.Struct)

WIRES: tuple[Wire, ...] = typing.get_args(Wire)
FROM_PROJECT = frozenset({("model", "name"), ("permissions", "deny"), ("permissions", "ask")})
"""What a project's own file may set before its folder is trusted: nothing that makes anything less strict."""
WITH_TRUST = frozenset(
    {("permissions", "allow"), ("permissions", "mode"), ("tools", "disabled"), ("model", "effort")}
    | {("limits", name) for name in Limits.__struct_fields__}
)
"""What it may set besides, once it is trusted. Never where requests and keys go, and never the mode `bypass`."""
_LISTS = frozenset({("permissions", "allow"), ("permissions", "ask"), ("permissions", "deny"), ("tools", "disabled")})


def merge(tiers: Sequence[Tier], state_dir: Path, *, trusted: bool = False) -> Settings:
    """The settings of `tiers`, weakest first. `state_dir` is the default. Nothing is read or changed.

    `trusted`: the person trusts what the project's own file says.
    """
    problems = [problem for tier in tiers for problem in tier.problems]
    single: dict[tuple[str, ...], Assignment] = {}
    added: dict[tuple[str, ...], list[Assignment]] = {}
    for assignment in _admitted(tiers, problems, trusted):
        if assignment.path in _LISTS:
            added.setdefault(assignment.path, []).append(assignment)
        else:
            single[assignment.path] = assignment
    providers, faults = _providers(single)
    chosen = single.get(("state_dir",))
    return Settings(
        state_dir=state_dir if chosen is None else Path(str(chosen.value)),
        model=_struct(ModelSettings, "model", single),
        providers=providers,
        permissions=PermissionSettings(
            **_values("permissions", single),
            allow=_rules(added.get(("permissions", "allow"), ())),
            ask=_rules(added.get(("permissions", "ask"), ())),
            deny=_rules(added.get(("permissions", "deny"), ())),
        ),
        limits=_struct(Limits, "limits", single),
        tools=ToolSettings(disabled=tuple(r.pattern for r in _rules(added.get(("tools", "disabled"), ())))),
        ui=_struct(UiSettings, "ui", single),
        hooks=tuple(_hooks(tiers, problems, trusted)),
        sources={a.field: a.source for a in (*single.values(), *(a for several in added.values() for a in several))},
        problems=tuple(problems + faults),
    )


def _hooks(tiers: Sequence[Tier], problems: list[Problem], trusted: bool) -> Iterable[HookDefinition]:
    """The hooks of operator and user, and a project's own where its folder is trusted."""
    for tier in tiers:
        if tier.name != "project" or trusted:
            yield from tier.hooks
        elif tier.hooks:
            problems.append(
                Problem(
                    source=Source(tier="project", place=tier.place),
                    field="hooks",
                    text=f"{len(tier.hooks)} hooks of the project's own file are ignored",
                    hint="`counterfoil trust` shows and trusts them",
                    fatal=False,
                )
            )


def _admitted(tiers: Sequence[Tier], problems: list[Problem], trusted: bool) -> Iterable[Assignment]:
    for tier in tiers:
        for assignment in tier.assignments:
            if tier.name != "project" or assignment.path in FROM_PROJECT:
                yield assignment
                continue
            may_be = assignment.path in WITH_TRUST and assignment.value != "bypass"
            if trusted and may_be:
                yield assignment
                continue
            problems.append(
                Problem(
                    source=assignment.source,
                    field=assignment.field,
                    text="a project's own file can't set this; it is ignored",
                    hint="`counterfoil trust` shows and trusts it"
                    if may_be
                    else "set it in your user configuration, or by a flag",
                    fatal=False,
                )
            )


def _values(table: str, single: dict[tuple[str, ...], Assignment]) -> dict[str, Any]:
    return {a.path[1]: a.value for a in single.values() if len(a.path) == 2 and a.path[0] == table}


def _struct(kind: type[_T], table: str, single: dict[tuple[str, ...], Assignment]) -> _T:
    return kind(**_values(table, single))


def _rules(assignments: Iterable[Assignment]) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for assignment in assignments:
        values = typing.cast(list[str], assignment.value)
        rules += [Rule(pattern=value, source=assignment.source) for value in values]
    return tuple(rules)


def _providers(
    single: dict[tuple[str, ...], Assignment],
) -> tuple[dict[str, ProviderSettings], list[Problem]]:
    fields: dict[str, dict[str, Assignment]] = {}
    for a in single.values():
        if a.path[0] == "providers":
            fields.setdefault(a.path[1], {})[a.path[2]] = a
    providers: dict[str, ProviderSettings] = {}
    faults: list[Problem] = []
    for name, given in fields.items():
        values: dict[str, Any] = {field: a.value for field, a in given.items()}
        if name in WIRES:
            values.setdefault("wire", name)
        if "wire" not in values:
            source = next(iter(given.values())).source
            hint = f"one of {', '.join(WIRES)}"
            faults.append(Problem(source=source, field=f"providers.{name}.wire", text="is missing", hint=hint))
            continue
        url = given.get("base_url")
        if url is not None and values["wire"] != "scripted" and (fault := url_fault(str(url.value))):
            faults.append(Problem(source=url.source, field=url.field, text=fault[0], hint=fault[1]))
        providers[name] = ProviderSettings(name=name, **values)
    return providers, faults
