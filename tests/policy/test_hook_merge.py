"""What several answers come to: a table of decisions, and properties of any list of answers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.events import Definition, TextPart
from counterfoil.identity import RandomIds, SessionID, ToolCallID, arguments_digest, result_digest
from counterfoil.policy.hook_merge import BLOCKING, DIFF_CHARACTERS, Merged, late_notices, merge
from counterfoil.ports import HookAnswer, HookCall, HookPhase
from tests.support.strategies import examples

SESSION = SessionID("ses_1")
CALL = ToolCallID("call_1")
ORIGINAL = {"command": "ls"}


def said(name: str = "h", **fields: Any) -> HookAnswer:
    return HookAnswer(definition=Definition(name=name, tier="user"), **fields)


def merged(*answers: HookAnswer, phase: HookPhase = "PreToolUse") -> Merged:
    return merge(phase, answers, session=SESSION, ids=RandomIds(), tool_call_id=CALL, arguments=ORIGINAL)


SAYS: dict[str, dict[str, Any]] = {
    "-": {},
    "allow": {"permission": "allow"},
    "ask": {"permission": "ask"},
    "defer": {"permission": "defer"},
    "deny": {"permission": "deny"},
    "block": {"blocked": True, "reason": "no"},
    "fail": {"failure": "crashed"},
    "fail!": {"failure": "crashed", "on_failure": "block"},
}


@pytest.mark.parametrize(
    ("answers", "verdict", "outcomes"),
    [
        ("", None, ""),
        ("-", None, ""),
        ("allow", "allow", "allowed"),
        ("ask", "ask", "asked"),
        ("defer", "defer", "asked"),
        ("deny", "block", "denied"),
        ("block", "block", "blocked"),
        ("fail", None, "failed"),
        ("fail!", "block", "failed blocked"),
        ("- allow", "allow", "allowed"),
        ("allow -", "allow", "allowed"),
        ("allow ask", "ask", "allowed asked"),
        ("ask allow", "ask", "asked allowed"),
        ("ask defer allow", "defer", "asked asked allowed"),
        ("defer ask", "defer", "asked asked"),
        ("deny defer", "block", "denied asked"),
        ("defer deny", "block", "asked denied"),
        ("allow block", "block", "allowed blocked"),
        ("block allow", "block", "blocked allowed"),
        ("fail allow", "allow", "failed allowed"),
        ("fail! allow", "block", "failed blocked allowed"),
        ("allow fail!", "block", "allowed failed blocked"),
        ("fail ask", "ask", "failed asked"),
    ],
)
def test_deny_then_defer_then_ask_then_allow(answers: str, verdict: str | None, outcomes: str) -> None:
    found = merged(*(said(**SAYS[name]) for name in answers.split()))
    assert (found.verdict, " ".join(r.outcome for r in found.records)) == (verdict, outcomes)


@pytest.mark.parametrize("silent_first", [True, False])
def test_h1_a_change_holds_beside_a_silent_hook_in_both_orders(silent_first: bool) -> None:
    answers = [said("silent"), said("changer", updated_input={"command": "pwd"})]
    found = merged(*(answers if silent_first else reversed(answers)))
    (record,) = found.records
    assert found.arguments == {"command": "pwd"} and found.changed_by == record.hook_id
    assert (record.before, record.after) == (arguments_digest(ORIGINAL), arguments_digest({"command": "pwd"}))
    assert '- "command": "ls"' in record.diff and '+ "command": "pwd"' in record.diff


def test_changes_apply_in_order_and_the_second_is_a_warning_that_names_both_digests() -> None:
    one, two = {"command": "one"}, {"command": "two"}
    found = merged(said("a", updated_input=one), said("b", updated_input=two))
    first, second = found.records
    assert found.arguments == two and found.changed_by == second.hook_id
    assert (first.severity, second.severity) == ("notable", "warning")
    assert first.after == second.before == arguments_digest(one) and second.after == arguments_digest(two)


def test_a_change_to_the_same_arguments_is_no_change() -> None:
    found = merged(said(updated_input=dict(ORIGINAL)))
    assert found.arguments is None and found.records == ()


def test_arguments_that_were_changed_beside_a_block_are_not_effective() -> None:
    found = merged(said(updated_input={"command": "x"}), said(blocked=True, reason="no"))
    assert found.arguments is None and found.changed_by is None and len(found.records) == 2


def test_one_answer_with_two_outcomes_makes_two_records_with_two_ids() -> None:
    found = merged(said(updated_input={"command": "x"}, permission="ask", additional_context="c"))
    assert sorted(r.outcome for r in found.records) == ["added_context", "asked", "changed_input"]
    assert len({r.hook_id for r in found.records}) == 3
    assert all((r.origin_session_id, r.tool_call_id, r.revision) == (SESSION, CALL, 0) for r in found.records)


def test_a_diff_and_a_message_are_bounded() -> None:
    found = merged(said(updated_input={"command": "\n".join("x" * 90 for _ in range(900))}, system_message="m" * 9000))
    assert all(len(r.diff) <= DIFF_CHARACTERS + 2 and len(r.message) <= 2000 for r in found.records)
    assert "\x1b" not in merged(said(updated_input={"command": "\x1b[2J"})).records[0].diff


@pytest.mark.parametrize(
    ("answers", "request_"),
    [("allow", "allow"), ("deny", "deny"), ("allow deny", "deny"), ("deny allow", "deny"), ("- allow", "allow")],
)
def test_a_denied_permission_request_stays_denied(answers: str, request_: str) -> None:
    given: list[HookAnswer] = [said(request=None if a == "-" else a) for a in answers.split()]
    assert merged(*given, phase="PermissionRequest").request == request_


@pytest.mark.parametrize("phase", ["PostToolUse", "PostToolUseFailure"])
def test_a_block_after_the_fact_is_told_to_the_model(phase: HookPhase) -> None:
    found = merged(said(blocked=True, reason="lint it"), phase=phase)
    assert found.verdict is None and found.contexts == ("lint it",)


def test_continue_false_stops_with_its_reason() -> None:
    found = merged(said(), said(proceed=False, stop_reason="enough"))
    assert found.stop == "enough" and [r.outcome for r in found.records] == ["stopped"]


def test_outputs_that_are_replaced_one_after_the_other_form_a_chain_and_each_keeps_what_it_replaced() -> None:
    original = (TextPart(text="the tool's own"),)
    answers = [said("a", updated_output="one"), said("b"), said("c", updated_output="two \x1b")]
    found = merge("PostToolUse", answers, session=SESSION, ids=RandomIds(), tool_call_id=CALL, result=original)
    first, second = found.records
    assert found.output == (TextPart(text="two ␛"),)
    assert first.before == result_digest(original) and first.after == result_digest((TextPart(text="one"),))
    assert second.before == first.after and second.after == result_digest(found.output)
    assert (first.severity, second.severity) == ("notable", "warning")
    assert found.replaced == {first.hook_id: original, second.hook_id: (TextPart(text="one"),)}


def test_a_replaced_output_is_bounded_as_any_result_in_the_log_is() -> None:
    (part,) = merged(said(updated_output="x" * 1_000_000), phase="PostToolUse").output or ()
    assert isinstance(part, TextPart) and len(part.text) < 300_000 and part.truncated_bytes > 0


@pytest.mark.parametrize(
    "other",
    [{"request": "deny"}, {"blocked": True, "reason": "no"}, {"failure": "crashed", "on_failure": "block"}],
)
@pytest.mark.parametrize("denied_first", [True, False])
def test_arguments_of_a_permission_request_that_is_denied_beside_change_nothing(
    other: dict[str, Any], denied_first: bool
) -> None:
    answers = [said("a", request="allow", updated_input={"command": "x"}), said("b", **other)]
    found = merged(*(reversed(answers) if denied_first else answers), phase="PermissionRequest")
    assert found.arguments is None and found.changed_by is None
    assert "changed_input" not in [r.outcome for r in found.records]
    assert any(r.outcome == "notice" and "aren't used" in r.message for r in found.records)


def test_arguments_of_a_permission_request_that_is_allowed_change_the_call() -> None:
    answers = [said(request="allow", updated_input={"command": "x"}), said(failure="crashed"), said()]
    found = merged(*answers, phase="PermissionRequest")
    assert found.arguments == {"command": "x"} and found.request == "allow"
    assert [r.outcome for r in found.records] == ["allowed", "changed_input", "failed"]


@pytest.mark.parametrize(
    ("fields", "severity", "text"),
    [
        ({"failure": "crashed"}, "warning", "failed: crashed"),
        ({"blocked": True, "reason": "no\x1b"}, "warning", "decides nothing; not used: its block: no␛"),
        ({"permission": "deny"}, "warning", "not used: `deny`"),
        ({"updated_input": {}}, "warning", "not used: `updatedInput`"),
        ({"additional_context": "c"}, "warning", "not used: `additionalContext`"),
        ({"proceed": False}, "warning", "not used: `continue: false`"),
        ({"system_message": "done"}, "notable", "done"),
        ({"warnings": ("odd",)}, "warning", "odd"),
    ],
)
def test_what_a_background_hook_said_is_told_with_its_call(fields: dict[str, Any], severity: str, text: str) -> None:
    call = HookCall(phase="PostToolUse", payload={}, tool_call_id=CALL)
    (notice,) = late_notices(call, said("h", **fields))
    assert (notice.severity, notice.code) == (severity, "hook_late")
    assert notice.text.startswith("hook h (PostToolUse of call call_1): ") and notice.text.endswith(text)
    assert late_notices(call, said("h")) == []


HIDDEN = "\x1b[2J\x9b1m\x7f\u202a\u202e\u2066\u2069\u200b\u200e\u2028\ufeff\U000e0041"


@pytest.mark.parametrize("mark", HIDDEN.replace("[2J", "").replace("1m", ""))
def test_nothing_that_acts_on_a_terminal_or_hides_is_published(mark: str) -> None:
    text = f"a{mark}b"
    found = merged(
        said("1", updated_input={"command": text, text: 1}, permission="deny", permission_reason=text),
        said("2", system_message=text, additional_context=text, failure=None, warnings=(text,)),
        said("3", failure=text),
        said("4", proceed=False, stop_reason=text),
        said("5", blocked=True, reason=text),
    )
    asked = merged(said(request="deny", request_message=text, interrupt=True), phase="PermissionRequest")
    published = [r.message + r.diff for r in (*found.records, *asked.records)]
    assert len(published) == 10 and all(mark not in shown for shown in published)
    assert not any(mark in shown for shown in (found.reason, found.stop, asked.stop, asked.request_reason) if shown)
    assert any(f"U+{ord(mark):04X}" in shown or "␛" in shown or "␡" in shown for shown in published)


def test_a_line_separator_inside_a_value_is_no_line_of_the_diff() -> None:
    (record,) = merged(said(updated_input={"command": "a\u2028b\x85c"})).records
    assert '+ "command": "a<U+2028>b<U+0085>c"' in record.diff.split("\n")


ANSWERS = st.builds(
    lambda fields, change, context: said(**fields, updated_input=change, additional_context=context),
    st.sampled_from(list(SAYS.values())),
    st.none() | st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2),
    st.sampled_from(["", "c1", "c2"]),
)


@examples(300)
@given(st.lists(ANSWERS, max_size=6))
def test_a_deny_always_wins_and_its_changes_never_run(answers: list[HookAnswer]) -> None:
    denies = any(
        (a.failure is None and (a.blocked or a.permission == "deny")) or (a.failure and a.on_failure == "block")
        for a in answers
    )
    found = merged(*answers)
    assert (found.verdict == "block") == denies
    assert not denies or found.arguments is None


@examples(300)
@given(st.lists(ANSWERS, max_size=6))
def test_order_is_that_of_configuration(answers: list[HookAnswer]) -> None:
    named = [said(str(n), **_fields(a)) for n, a in enumerate(answers)]
    found = merged(*named)
    places = [int(r.definition.name) for r in found.records]
    assert places == sorted(places)
    heard = [a for a in answers if a.failure is None]
    assert list(found.contexts) == [a.additional_context for a in heard if a.additional_context]
    last = next((a.updated_input for a in reversed(heard) if a.updated_input is not None), None)
    if found.arguments is not None:
        assert found.arguments == last
    steps = [r for r in found.records if r.outcome == "changed_input"]
    assert all(a.after == b.before for a, b in itertools.pairwise(steps))


@examples(100)
@given(st.lists(ANSWERS, max_size=4), st.sampled_from(["Notification", "SessionEnd", "PostToolUse"]))
def test_what_can_not_be_blocked_is_not_blocked_by_block_or_failure(answers: list[HookAnswer], phase: Any) -> None:
    assert phase not in BLOCKING
    given_ = [said(**{k: v for k, v in _fields(a).items() if k != "permission"}) for a in answers]
    assert merged(*given_, phase=phase).verdict is None


def _fields(answer: HookAnswer) -> dict[str, Any]:
    return {name: getattr(answer, name) for name in answer.__struct_fields__ if name != "definition"}
