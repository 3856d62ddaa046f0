"""What is configured, as rows: hooks, rules, checkers."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.config import Settings
from counterfoil.service.grants import Grants
from counterfoil.tui.link import Fact

if TYPE_CHECKING:
    from counterfoil.hooks import HookDefinition


def hooks(settings: Settings) -> list[Fact]:
    """Each configured hook: phase, name, matcher, kind, tier."""
    return [Fact(cells=(h.phase, h.name, h.matcher or "*", h.kind, h.tier), detail=_hook(h)) for h in settings.hooks]


def _hook(hook: HookDefinition) -> str:
    rows = [
        ("runs", hook.command or hook.url or hook.entry or hook.prompt),
        ("condition", hook.condition or ""),
        ("timeout", f"{hook.timeout:g} s"),
        ("on failure", hook.on_failure),
        ("configured in", hook.place),
    ]
    return "\n".join(f"{name}: {value}" for name, value in rows if value)


def rules(settings: Settings, workspace: Path, session: list[tuple[str, str]]) -> list[Fact]:
    """Each rule that holds: what it does, the rule, and where it comes from."""
    lists = settings.permissions
    found = [
        Fact(cells=(verdict, rule.pattern, f"{rule.source.tier}: {rule.source}"), detail=str(rule.source))
        for verdict, of_kind in (("deny", lists.deny), ("ask", lists.ask), ("allow", lists.allow))
        for rule in of_kind
    ]
    learned = [
        Fact(cells=("allow", grant.rule, "learned: always"), detail=f"{grant.ask_id}", revocable=grant.rule)
        for grant in Grants(settings.state_dir).of(str(workspace))
    ]
    known = {fact.revocable for fact in learned}
    return [
        *found,
        *learned,
        *(
            Fact(cells=("allow", rule, f"learned: {scope}"), revocable=rule)
            for rule, scope in session
            if rule not in known
        ),
    ]


def diagnostics(settings: Settings, workspace: Path) -> list[tuple[str, str]]:
    """Versions, places, files that were read, warnings."""
    from importlib.metadata import version

    from counterfoil.config.load import files

    crashes = settings.state_dir / "crashes"
    kept = len(list(crashes.iterdir())) if crashes.is_dir() else 0
    return [
        ("counterfoil", version("counterfoil")),
        ("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("connection", "a service in this process"),
        *((name, os.environ[name]) for name in ("TERM", "COLORTERM", "NO_COLOR", "LANG") if name in os.environ),
        ("workspace", f"{workspace} (trust: {settings.trust})"),
        ("state directory", str(settings.state_dir)),
        *((name, f"{path}: {'read' if path.exists() else 'not there'}") for name, path in files(workspace, os.environ)),
        ("faults of tools kept", f"{kept} in {crashes}"),
        *(("warning", str(problem)) for problem in settings.problems),
    ]


def checkers(settings: Settings) -> list[Fact]:
    """Each review policy: its name, jobs, tools, checker and what a concern does."""
    return [
        Fact(
            cells=(rule.name, " ".join(rule.jobs), " ".join(rule.tools), rule.checker, rule.enforcement),
            detail=f"a concern: {rule.on_concern}\ntimeout: {rule.timeout:g} s\ntier: {rule.tier}",
        )
        for rule in settings.reviews.rules
    ]
