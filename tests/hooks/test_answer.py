"""The contract: exit codes, JSON and text, and that nothing wrong passes in silence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.hooks.answer import Said, from_command
from counterfoil.hooks.definition import HookDefinition
from counterfoil.ports import HookPhase
from tests.support.strategies import examples


def said(phase: HookPhase, stdout: Any = b"", *, code: int = 0, stderr: bytes = b"", cut: int = 0) -> Any:
    output = stdout if isinstance(stdout, bytes) else json.dumps(stdout).encode()
    definition = HookDefinition(name="h", tier="user", phase=phase, command="x")
    return from_command(definition, Said(exit_code=code, stdout=output, stderr=stderr, cut=cut))


def specific(phase: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": phase, **fields}}


def test_exit_0_without_output_is_silent() -> None:
    found = said("PreToolUse")
    assert (found.failure, found.blocked, found.permission, found.proceed) == (None, False, None, True)


def test_exit_2_blocks_and_standard_error_is_the_reason() -> None:
    found = said("PreToolUse", {"continue": True}, code=2, stderr=b"no\n")
    assert found.blocked and found.reason == "no" and found.failure is None


@pytest.mark.parametrize(
    ("code", "text"), [(1, "exit code 1"), (126, "can't be executed"), (127, "not found"), (-9, "signal 9")]
)
def test_h2_any_other_exit_is_a_visible_failure(code: int, text: str) -> None:
    assert text in said("PreToolUse", code=code, stderr=b"boom").failure


@pytest.mark.parametrize(
    "output",
    [
        {"hookSpecificOutput": {"permissionDecision": "allow"}},
        {"hookSpecificOutput": {"hookEventName": "PostToolUse", "permissionDecision": "allow"}},
        {"hookSpecificOutput": []},
        specific("PreToolUse", permissionDecision="maybe"),
        specific("PreToolUse", updatedInput="ls"),
        {"continue": "no"},
        {"decision": 7},
        b"{not json",
        b'{"a": 1} trailing',
    ],
)
def test_h3_output_that_is_not_of_the_contract_is_a_visible_failure(output: Any) -> None:
    found = said("PreToolUse", output)
    assert found.failure and found.permission is None and found.updated_input is None


@pytest.mark.parametrize(
    "output",
    [
        {"permissionDecision": "deny"},
        {"updatedInput": {"command": "ls"}},
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "decision": {"behavior": "deny"}}},
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "PermissionDecision": "deny"}},
        b'{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecision":"allow"}}',
        b'Welcome!\n{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}',
        b'Welcome!\n{"decision":"block"}\nbye',
    ],
)
def test_a_decision_in_the_wrong_place_is_a_failure_and_never_a_silent_yes(output: Any) -> None:
    found = said("PreToolUse", output)
    assert found.failure and found.permission is None and found.updated_input is None


def test_fields_without_a_use_are_named_in_one_bounded_warning() -> None:
    found = said("PreToolUse", specific("PreToolUse", permissionDescision="deny") | {f"f{n}": n for n in range(500)})
    assert found.failure is None and len(found.warnings) == 2
    assert "permissionDescision" in " ".join(found.warnings) and all(len(w) < 600 for w in found.warnings)


def test_context_where_nobody_reads_it_is_said_and_not_taken() -> None:
    found = said("Notification", specific("Notification", additionalContext="x"))
    assert found.additional_context == "" and "additionalContext" in found.warnings[0]


def test_a_block_of_what_can_not_be_blocked_is_said() -> None:
    found = said("Notification", {"decision": "block", "reason": "loud"})
    assert not found.blocked and "loud" in found.warnings[0]


def test_a_deprecated_denial_is_not_undone_by_an_allow_beside_it() -> None:
    both = {"decision": "block"} | specific("PreToolUse", permissionDecision="allow")
    assert said("PreToolUse", both).permission == "deny"


def test_a_byte_order_mark_is_no_text_before_the_answer() -> None:
    output = b"\xef\xbb\xbf" + json.dumps(specific("PreToolUse", permissionDecision="deny")).encode()
    assert said("PreToolUse", output).permission == "deny"


def test_a_top_level_approval_of_a_permission_request_allows_nothing() -> None:
    found = said("PermissionRequest", {"decision": "approve"})
    assert found.request is None and found.warnings


def test_json_that_is_nested_deeper_than_can_be_read_is_a_failure() -> None:
    assert said("PreToolUse", b'{"a":' * 50_000 + b"1" + b"}" * 50_000).failure


def test_each_decision_of_a_pre_tool_hook_is_read() -> None:
    for decision in ("allow", "deny", "ask", "defer"):
        found = said("PreToolUse", specific("PreToolUse", permissionDecision=decision, permissionDecisionReason="r"))
        assert (found.permission, found.permission_reason) == (decision, "r")


def test_the_deprecated_decision_is_mapped_with_a_warning() -> None:
    assert said("PreToolUse", {"decision": "approve"}).permission == "allow"
    found = said("PreToolUse", {"decision": "block", "reason": "no"})
    assert (found.permission, found.permission_reason) == ("deny", "no") and found.warnings


def test_plain_text_is_context_where_the_contract_says_so() -> None:
    assert said("UserPromptSubmit", b"remember this").additional_context == "remember this"
    assert said("PreToolUse", b"remember this").additional_context == ""


def test_a_permission_request_is_answered_with_arguments() -> None:
    decision = {"behavior": "allow", "updatedInput": {"a": 1}}
    found = said("PermissionRequest", specific("PermissionRequest", decision=decision))
    assert (found.request, found.updated_input) == ("allow", {"a": 1})
    denied = said("PermissionRequest", specific("PermissionRequest", decision={"behavior": "deny", "message": "m"}))
    assert (denied.request, denied.request_message) == ("deny", "m")


def test_output_that_was_cut_is_said() -> None:
    assert "left out" in said("PostToolUse", b"x", cut=7).warnings[0]


@examples(300)
@given(st.sampled_from(["PreToolUse", "Stop", "UserPromptSubmit"]), st.binary(), st.integers(-10, 300))
def test_no_output_can_raise(phase: Any, output: bytes, code: int) -> None:
    said(phase, output, code=code, stderr=output)
    said(phase, b"{" + output, code=0)
    said(phase, output + b'\n{"decision":' + output, code=0)
