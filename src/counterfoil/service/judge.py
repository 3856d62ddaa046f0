"""What the rules would say of a call, without running it: the same settings and the same decision as in a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterfoil.config import Settings
from counterfoil.errors import UsageError
from counterfoil.events import Mode
from counterfoil.identity import SessionID, ToolCallID
from counterfoil.policy.bash import shell_paths
from counterfoil.policy.paths import Place
from counterfoil.policy.permissions import CallFacts, Decision, decide
from counterfoil.policy.rules import as_rules
from counterfoil.ports import Targets, ToolContext
from counterfoil.service.grants import Grants
from counterfoil.service.rules import rules_of

_ARGUMENT = {
    "Bash": "command",
    "Read": "file_path",
    "Write": "file_path",
    "Edit": "file_path",
    "Glob": "path",
    "Grep": "path",
    "WebFetch": "url",
}
_FILLING: dict[str, dict[str, Any]] = {
    "Write": {"content": ""},
    "Edit": {"old_string": "a", "new_string": "b"},
    "Glob": {"pattern": "*"},
    "Grep": {"pattern": "x"},
    "WebFetch": {"prompt": ""},
}


def judge(text: str, settings: Settings, workspace: Path, env: Mapping[str, str], mode: Mode | None = None) -> Decision:
    """The decision on a call written as `Tool` or `Tool(argument)`: a command, a path, a URL or a domain.

    Raises `UsageError` where that isn't a call.
    """
    from counterfoil.tools import BuiltinTools

    tool_name, argument = _split(text)
    place = Place(workspace=os.path.realpath(workspace), home=os.path.realpath(Path.home()))
    tool = BuiltinTools(workspace, environment=env).get(tool_name)
    targets = Targets()
    if tool is not None and argument is not None:
        targets = tool.targets(_context(workspace), _arguments(tool_name, argument))
    links: dict[str, str] = {}
    if targets.command is not None:
        links = {path: os.path.realpath(path) for path in shell_paths(targets.command, place)}
    read_only = tool is not None and tool.spec.read_only
    facts = CallFacts(tool=tool_name, read_only=read_only, targets=targets, links=links)
    learned = tuple(grant.rule for grant in Grants(settings.state_dir).of(str(workspace)))
    return decide(facts, rules_of(settings), mode or settings.permissions.mode, place=place, grants=learned)


def unknown_names(settings: Settings, workspace: Path, env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each rule over a tool that isn't among those built in, with the names that are."""
    from counterfoil.tools import BuiltinTools

    known = [spec.name for spec in BuiltinTools(workspace, environment=env).specs]
    lists = rules_of(settings)
    rules = as_rules((*lists.deny, *lists.ask, *lists.allow))
    named = [rule for rule in rules if not any(rule.names(name) for name in known)]
    return [(rule.text, ", ".join(sorted(known))) for rule in named if not rule.tool.startswith("mcp__")]


def _split(text: str) -> tuple[str, str | None]:
    name, bracket, rest = text.strip().partition("(")
    if not name or (bracket and not rest.endswith(")")):
        raise UsageError(f"{text!r} is not a call", hint="write it like 'Bash(git log && rm x)' or 'Read(.env)'")
    return name.strip(), rest[:-1] if bracket else None


def _arguments(tool: str, argument: str) -> dict[str, Any]:
    field = _ARGUMENT.get(tool)
    if field is None:
        raise UsageError(f"{tool} takes no argument here", hint=f"write just {tool!r}")
    if tool == "WebFetch" and "://" not in argument:
        argument = f"https://{argument.removeprefix('domain:')}/"
    return {field: argument, **_FILLING.get(tool, {})}


def _context(workspace: Path) -> ToolContext:
    return ToolContext(
        session_id=SessionID("ses_none"),
        tool_call_id=ToolCallID("call_none"),
        workspace=workspace,
        output_dir=workspace,
        environment={},
        progress=lambda text: None,
    )
