"""What the configuration says and where each value came from."""

from __future__ import annotations

from typing import Any

import msgspec

from counterfoil.config.trust import Offer
from counterfoil.config.values import Rule, Settings, Tier, TrustState
from counterfoil.hooks.definition import HookDefinition
from counterfoil.ports import ReviewRule


class FileReport(msgspec.Struct, frozen=True, kw_only=True):
    """One file that was looked for."""

    tier: str
    path: str
    read: bool


class ValueReport(msgspec.Struct, frozen=True, kw_only=True):
    """One value and its source."""

    field: str
    value: Any
    source: str


class ProblemReport(msgspec.Struct, frozen=True, kw_only=True):
    """One fault or warning."""

    fatal: bool
    text: str
    hint: str = ""


class TrustReport(msgspec.Struct, frozen=True, kw_only=True):
    """How it stands with the project's folder, and the scripts that a trust covers beside its configuration."""

    state: TrustState
    scripts: list[str]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that `config check` says."""

    files: list[FileReport]
    values: list[ValueReport]
    problems: list[ProblemReport]
    trust: TrustReport
    notes: list[str]


_UNREAD = "not read (`[compat] claude = true` in your own configuration, or --compat-claude, reads it)"
_FILES = ("operator", "user", "project")


def explain(tiers: list[Tier], settings: Settings, offer: Offer | None = None) -> Report:
    """The report on `tiers` and the `settings` that they make. `offer`: what the project asks to be trusted for."""
    return Report(
        files=[FileReport(tier=t.name, path=t.place, read=t.found) for t in tiers if t.name in _FILES],
        values=_values(settings),
        problems=[ProblemReport(fatal=p.fatal, text=str(p), hint=p.hint) for p in settings.problems],
        trust=TrustReport(state=settings.trust, scripts=[] if offer is None else list(offer.scripts)),
        notes=[*map(str, settings.notes), *(f"{path}: {_UNREAD}" for path in settings.unread)],
    )


def _values(settings: Settings) -> list[ValueReport]:
    rows = [_row(settings, "state_dir", str(settings.state_dir))]
    for table in ("model", "permissions", "limits", "tools", "asks", "ui", "compat"):
        struct = getattr(settings, table)
        for name in struct.__struct_fields__:
            value = getattr(struct, name)
            if value and isinstance(value, tuple) and isinstance(value[0], Rule):
                rows += [
                    ValueReport(field=f"{table}.{name}", value=rule.pattern, source=str(rule.source)) for rule in value
                ]
            else:
                rows.append(_row(settings, f"{table}.{name}", list(value) if isinstance(value, tuple) else value))
    for provider in settings.providers.values():
        for name in ("wire", "base_url", "api_key_env", "timeout"):
            rows.append(_row(settings, f"providers.{provider.name}.{name}", getattr(provider, name)))
        rows.append(_row(settings, f"providers.{provider.name}.headers", sorted(provider.headers)))
    rows += [
        ValueReport(field=f"reviews.{'/'.join(r.jobs)}", value=review_text(r), source=f"{r.tier}: {r.name}")
        for r in settings.reviews.rules
    ]
    return rows + [ValueReport(field=f"hooks.{h.phase}", value=hook_text(h), source=h.place) for h in settings.hooks]


def review_text(rule: ReviewRule) -> str:
    """A review policy in one line: what it covers, who checks, and what follows."""
    failure = rule.on_checker_failure or ("ask" if rule.enforcement == "enforced" else "allow_with_warning")
    unresolved = rule.on_unresolved or ("ask" if rule.enforcement == "enforced" else "allow_with_warning")
    follows = f"concern: {rule.on_concern}, " if rule.enforcement == "enforced" else ""
    return (
        f"{', '.join(rule.tools)}: {rule.checker}, {rule.enforcement} "
        f"({follows}unresolved: {unresolved}, checker fails: {failure})"
    )


def hook_text(hook: HookDefinition) -> str:
    """A hook in one line: when it fires and the whole of what it runs."""
    condition = f" if {hook.condition}" if hook.condition else ""
    name = "" if hook.name.startswith(f"{hook.phase}: ") else f" [{hook.name}]"
    return f"{hook.matcher or '*'}{condition}: {hook.kind} {hook.handler[2]}{name}"


def _row(settings: Settings, field: str, value: Any) -> ValueReport:
    source = settings.sources.get(field)
    return ValueReport(field=field, value=value, source="default" if source is None else str(source))
