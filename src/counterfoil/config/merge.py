"""From tiers to settings: pure, later tiers over earlier ones, rules added up, every source kept."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from counterfoil.config.schema import Wire
from counterfoil.config.strict import binding, is_bound, loosening
from counterfoil.config.trust import needs_trust
from counterfoil.config.urls import url_fault
from counterfoil.config.values import (
    AskSettings,
    Assignment,
    CompatSettings,
    ModelSettings,
    PermissionSettings,
    Problem,
    ProviderSettings,
    ReviewSettings,
    Rule,
    Settings,
    Source,
    Tier,
    TierName,
    ToolSettings,
    TrustState,
    UiSettings,
)
from counterfoil.events import Limits

_T = typing.TypeVar("_T", bound=msgspec.Struct)

WIRES: tuple[Wire, ...] = typing.get_args(Wire)
_FROM_PROJECT = frozenset({("model", "name"), ("permissions", "deny"), ("permissions", "ask")})
"""What a project's own file may set before its folder is trusted: nothing that makes anything less strict."""
_LISTS = frozenset({("permissions", "allow"), ("permissions", "ask"), ("permissions", "deny"), ("tools", "disabled")})


def merge(tiers: Sequence[Tier], state_dir: Path, *, trust: TrustState = "nothing") -> Settings:
    """The settings of `tiers`, weakest first. `state_dir` is the default. Nothing is read or changed.

    What is less strict than an earlier tier says is a problem, and the earlier value holds.

    A project's own hooks, allow rules and mode hold where `trust` is `trusted`; else one problem names all of them.
    """
    problems = [problem for tier in tiers for problem in tier.problems]
    problems += _untrusted(tiers, trust)
    single: dict[tuple[str, ...], Assignment] = {}
    added: dict[tuple[str, ...], list[Assignment]] = {}
    ordered: dict[tuple[str, ...], dict[TierName, Assignment]] = {}
    for assignment in _admitted(tiers, problems, trust):
        if assignment.path in _LISTS:
            added.setdefault(assignment.path, []).append(assignment)
        elif not is_bound(assignment.path):
            single[assignment.path] = assignment
        elif looser := loosening(assignment, ordered.setdefault(assignment.path, {})):
            problems.append(looser)
        else:
            single[assignment.path] = ordered[assignment.path][assignment.source.tier] = assignment
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
        compat=_struct(CompatSettings, "compat", single),
        asks=_struct(AskSettings, "asks", single),
        reviews=_reviews(tiers),
        hooks=tuple(h for tier in tiers if tier.name != "project" or trust == "trusted" for h in tier.hooks),
        trust=trust,
        binding=binding(ordered),
        notes=tuple(note for tier in tiers for note in tier.notes),
        sources={a.field: a.source for a in (*single.values(), *(a for several in added.values() for a in several))},
        problems=tuple(problems + faults),
    )


def _reviews(tiers: Sequence[Tier]) -> ReviewSettings:
    if not any(tier.reviews for tier in tiers):
        return ReviewSettings()
    from counterfoil.config.reviews import merge_reviews

    return merge_reviews(list(tiers))


def _untrusted(tiers: Sequence[Tier], trust: TrustState) -> Iterable[Problem]:
    """One line that says what of the project's files is ignored because its folder isn't trusted."""
    project = [tier for tier in tiers if tier.name == "project"]
    hooks = sum(len(tier.hooks) for tier in project)
    waiting = [a for tier in project for a in tier.assignments if needs_trust(a)]
    rules = sum(len(typing.cast(list[str], a.value)) for a in waiting if a.path == ("permissions", "allow"))
    others = dict.fromkeys(a.field for a in waiting if a.path != ("permissions", "allow"))
    what = [_count(hooks, "hook"), _count(rules, "allow rule"), *others]
    listed = ", ".join(text for text in what if text)
    if trust == "trusted" or not listed:
        return
    why = "has changed since it was trusted" if trust == "changed" else "isn't trusted"
    place = next(tier.place for tier in project if tier.hooks or any(map(needs_trust, tier.assignments)))
    yield Problem(
        source=Source(tier="project", place=place),
        field="",
        text=f"this folder {why}, so this is ignored: {listed}; `counterfoil trust` shows and trusts it",
        fatal=False,
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}" if number else ""


def _admitted(tiers: Sequence[Tier], problems: list[Problem], trust: TrustState) -> Iterable[Assignment]:
    for tier in tiers:
        for assignment in tier.assignments:
            if tier.name != "project" or assignment.path in _FROM_PROJECT:
                yield assignment
            elif not needs_trust(assignment):
                problems.append(
                    Problem(
                        source=assignment.source,
                        field=assignment.field,
                        text="a project's own file can't set this; it is ignored",
                        hint="set it in your user configuration, or by a flag",
                        fatal=False,
                    )
                )
            elif trust == "trusted":
                yield assignment


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
