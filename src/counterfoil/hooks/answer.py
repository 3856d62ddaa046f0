"""What a hook said, by the contract: exit code, standard output and error, or an HTTP answer. Pure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from counterfoil.events.codec import clean_text, loads
from counterfoil.hooks.definition import HookDefinition
from counterfoil.ports import HookAnswer

OUTPUT_BYTES = 1024 * 1024
"""More output than this is cut, with a warning."""

_PLAIN_IS_CONTEXT = frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart"})
_NO_BLOCK = frozenset({"SessionStart", "PermissionDenied", "PostToolUseFailure", "Notification", "SessionEnd"})


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
    text = output.decode("utf-8", "replace").strip()
    if not text:
        return base
    if not text.startswith("{"):
        if definition.phase in _PLAIN_IS_CONTEXT:
            return msgspec.structs.replace(base, additional_context=clean_text(text))
        return base
    try:
        value = loads(text)
        if not isinstance(value, dict):
            raise _Fault("the output is not a JSON object")
        return _read(definition, base, value)
    except ValueError as fault:
        return msgspec.structs.replace(base, failure=f"the output begins like JSON and is not: {str(fault)[:200]}")
    except _Fault as fault:
        return msgspec.structs.replace(base, failure=str(fault))


def answer(definition: HookDefinition, **fields: Any) -> HookAnswer:
    """An answer of this hook with these fields."""
    return HookAnswer(definition=definition.record, on_failure=definition.on_failure, **fields)


def _cut_warning(cut: int) -> tuple[str, ...]:
    return (f"{cut} bytes of the output over {OUTPUT_BYTES} were left out",) if cut else ()


def _ended(code: int) -> str:
    if code < 0:
        return f"ended by signal {-code}"
    if code == 127:
        return "the command was not found (exit 127)"
    if code == 126:
        return "the command can't be executed (exit 126)"
    return f"exit code {code}"


def _read(definition: HookDefinition, base: HookAnswer, value: dict[str, Any]) -> HookAnswer:
    fields: dict[str, Any] = {}
    _take(fields, "proceed", value, "continue", bool)
    _take(fields, "stop_reason", value, "stopReason", str)
    _take(fields, "suppress_output", value, "suppressOutput", bool)
    _take(fields, "system_message", value, "systemMessage", str)
    _take(fields, "retry", value, "retry", bool)
    reason = _text(value, "reason")
    decision = _choice(value, "decision", ("approve", "block", "allow", "deny"))
    if definition.phase == "PreToolUse" and decision is not None:
        fields["permission"] = "deny" if decision in ("block", "deny") else "allow"
        fields["permission_reason"] = reason
        fields["warnings"] = (*base.warnings, "`decision` of PreToolUse is deprecated: use `permissionDecision`")
    elif decision in ("block", "deny") and definition.phase not in _NO_BLOCK:
        fields |= {"blocked": True, "reason": reason or "blocked without a reason"}
    specific = value.get("hookSpecificOutput")
    if specific is not None:
        _specific(definition, fields, specific)
    return msgspec.structs.replace(base, **fields)


def _specific(definition: HookDefinition, fields: dict[str, Any], specific: Any) -> None:
    if not isinstance(specific, dict):
        raise _Fault("`hookSpecificOutput` is not an object")
    name = specific.get("hookEventName")
    if name != definition.phase:
        said = "has no `hookEventName`" if name is None else f"is for {str(name)[:100]}"
        raise _Fault(f"`hookSpecificOutput` {said}; this is {definition.phase}")
    _take(fields, "additional_context", specific, "additionalContext", str)
    if definition.phase == "PreToolUse":
        chosen = _choice(specific, "permissionDecision", ("allow", "deny", "ask", "defer"))
        if chosen is not None:
            fields["permission"] = chosen
        _take(fields, "permission_reason", specific, "permissionDecisionReason", str)
        _take(fields, "updated_input", specific, "updatedInput", dict)
    elif definition.phase == "PermissionRequest":
        _request(fields, specific.get("decision"))
    elif definition.phase == "PostToolUse":
        _take(fields, "updated_output", specific, "updatedToolOutput", str)
    elif definition.phase == "PermissionDenied":
        _take(fields, "retry", specific, "retry", bool)


def _request(fields: dict[str, Any], decision: Any) -> None:
    if decision is None:
        return
    if not isinstance(decision, dict):
        raise _Fault("`decision` is not an object")
    behavior = _choice(decision, "behavior", ("allow", "deny"))
    if behavior is None:
        raise _Fault("`decision` has no `behavior`")
    fields["request"] = behavior
    _take(fields, "request_message", decision, "message", str)
    _take(fields, "interrupt", decision, "interrupt", bool)
    if behavior == "allow":
        _take(fields, "updated_input", decision, "updatedInput", dict)


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
