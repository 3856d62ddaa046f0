"""What the answers of all hooks of one firing come to: one verdict, one set of arguments, a record for each outcome.

Pure. Answers stand in configuration order, and are applied in it.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from counterfoil.events import Definition, HookRecord, Notice, Outcome, Part, Severity, TextPart
from counterfoil.events.codec import clean_text
from counterfoil.events.visible import visible
from counterfoil.identity import (
    Digest,
    HookID,
    IdSource,
    Revision,
    SessionID,
    ToolCallID,
    arguments_digest,
    result_digest,
)
from counterfoil.policy.hook_rules import RulesAnswer, not_learned
from counterfoil.ports import HookAnswer, HookCall, HookPhase
from counterfoil.state.bounds import for_log

MESSAGE_CHARACTERS = 2_000
DIFF_CHARACTERS = 4_000
CONTEXT_CHARACTERS = 30_000

BLOCKING: frozenset[str] = frozenset(
    {"UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolBatch", "PreCompact", "Stop", "SubagentStop"}
    | {"TeammateIdle", "TaskCreated", "TaskCompleted"}
)
"""Phases in which a hook can block; only there does a failing hook with `on_failure: block` block."""

_AFTER_THE_FACT = frozenset({"PostToolUse", "PostToolUseFailure"})
HookVerdict = Literal["block", "defer", "ask", "allow"]


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of one firing. `records` have no revision yet: the publisher numbers them.

    `arguments`, with the record that changed them last: set where something changed and nothing blocked.
    `output` replaces a result; `replaced` has, for each record that replaced one, the exact parts that it replaced.
    `stop` ends the run. `request` answers a permission request; `learned` is the hook that wants its rule learned.
    """

    records: tuple[HookRecord, ...] = ()
    verdict: HookVerdict | None = None
    reason: str = ""
    arguments: dict[str, Any] | None = None
    changed_by: HookID | None = None
    contexts: tuple[str, ...] = ()
    output: tuple[Part, ...] | None = None
    replaced: Mapping[HookID, tuple[Part, ...]] = msgspec.field(default_factory=dict)
    stop: str | None = None
    request: Literal["allow", "deny"] | None = None
    request_reason: str = ""
    retry: bool = False
    learned: Definition | None = None


NOTHING = Merged()
"""No hook matched, or all were silent."""

_RANK: dict[str | None, int] = {None: 0, "allow": 1, "ask": 2, "defer": 3, "block": 4}


def merge(
    phase: HookPhase,
    answers: Sequence[HookAnswer],
    *,
    session: SessionID,
    ids: IdSource,
    tool_call_id: ToolCallID | None = None,
    arguments: Mapping[str, Any] | None = None,
    result: tuple[Part, ...] | None = None,
    rule: str | None = None,
) -> Merged:
    """Any block or deny wins, else defer, else ask, else allow; changes apply one after the other.

    `rule` is the one that a person could learn from this call: with other arguments, there is none.
    """
    sum_of = _Sum(phase, session, ids, tool_call_id, dict(arguments) if arguments is not None else None, result)
    sum_of.refused = phase == "PermissionRequest" and not _grants(answers)
    sum_of.rule = rule if all(a.updated_input in (None, arguments) for a in answers) else None
    for answer in answers:
        sum_of.add(answer)
    return sum_of.merged()


def _grants(answers: Sequence[HookAnswer]) -> bool:
    """Whether a permission request is granted: one hook allows, and none denies, blocks, or blocks by failing."""
    heard = [a for a in answers if a.failure is None]
    denied = any(a.blocked or a.request == "deny" or a.permission == "deny" for a in heard)
    failed = any(a.failure is not None and a.on_failure == "block" for a in answers)
    return not denied and not failed and any(a.request == "allow" for a in heard)


class _Sum:
    """The answers added up so far."""

    def __init__(
        self,
        phase: HookPhase,
        session: SessionID,
        ids: IdSource,
        tool_call_id: ToolCallID | None,
        arguments: dict[str, Any] | None,
        result: tuple[Part, ...] | None,
    ) -> None:
        self.phase, self.session, self.ids, self.tool_call_id = phase, session, ids, tool_call_id
        self.arguments, self.result = arguments, result
        self.replaced: dict[HookID, tuple[Part, ...]] = {}
        self.refused = False
        self.rule: str | None = None
        self.records: list[HookRecord] = []
        self.contexts: list[str] = []
        self.values: dict[str, Any] = {}
        self.verdict: HookVerdict | None = None
        self.reason = ""
        self.changed_by: HookID | None = None

    def add(self, answer: HookAnswer) -> None:
        """One more answer."""
        for warning in answer.warnings:
            self._record(answer, "notice", "warning", warning)
        if answer.failure is not None:
            self._failed(answer, answer.failure)
            return
        if not answer.proceed:
            reason = answer.stop_reason or "the hook stopped the run"
            self._record(answer, "stopped", "blocking", reason)
            self.values["stop"] = _shown(reason)[:MESSAGE_CHARACTERS]
        self._decide(answer)
        self._change(answer)
        if answer.additional_context:
            self.contexts.append(clean_text(answer.additional_context)[:CONTEXT_CHARACTERS])
            self._record(answer, "added_context", "notable", answer.additional_context)
        if answer.system_message:
            self._record(answer, "notice", "notable", answer.system_message)
        if answer.retry:
            self.values["retry"] = True
        if isinstance(answer, RulesAnswer):
            self._learn(answer)

    def merged(self) -> Merged:
        """The sum."""
        changed = self.changed_by is not None and self.verdict != "block"
        return Merged(
            records=tuple(self.records),
            verdict=self.verdict,
            reason=self.reason,
            arguments=self.arguments if changed else None,
            changed_by=self.changed_by if changed else None,
            contexts=tuple(self.contexts),
            replaced=self.replaced,
            **self.values,
        )

    def _failed(self, answer: HookAnswer, failure: str) -> None:
        blocks = answer.on_failure == "block" and self.phase in BLOCKING
        self._record(answer, "failed", "blocking" if blocks else "warning", failure)
        if blocks:
            reason = f"hook {answer.definition.name} failed: {failure}"
            self._record(answer, "blocked", "blocking", reason)
            self._raise("block", reason)

    def _decide(self, answer: HookAnswer) -> None:
        if answer.blocked:
            reason = answer.reason or "no reason given"
            if self.phase in _AFTER_THE_FACT:
                self.contexts.append(clean_text(reason)[:CONTEXT_CHARACTERS])
                self._record(answer, "added_context", "warning", reason)
            elif self.phase == "PostToolBatch":
                self._record(answer, "stopped", "blocking", reason)
                self.values["stop"] = _shown(reason)[:MESSAGE_CHARACTERS]
            elif self.phase in BLOCKING:
                self._record(answer, "blocked", "blocking", reason)
                self._raise("block", reason)
            else:
                self._record(answer, "notice", "warning", reason)
        said = answer.permission_reason or f"hook {answer.definition.name}"
        if answer.permission == "deny":
            self._record(answer, "denied", "blocking", said)
            self._raise("block", said)
        elif answer.permission in ("ask", "defer"):
            self._record(answer, "asked", "notable", f"deferred: {said}" if answer.permission == "defer" else said)
            self._raise(answer.permission, said)
        elif answer.permission == "allow":
            self._record(answer, "allowed", "benign", said)
            self._raise("allow", said)
        self._answer_request(answer)

    def _answer_request(self, answer: HookAnswer) -> None:
        if answer.request is None:
            return
        said = answer.request_message or f"hook {answer.definition.name}"
        denies = answer.request == "deny"
        self._record(answer, "denied" if denies else "allowed", "blocking" if denies else "benign", said)
        if denies or self.values.get("request") is None:
            self.values["request"] = answer.request
            self.values["request_reason"] = _shown(said)[:MESSAGE_CHARACTERS]
        if denies and answer.interrupt:
            self.values["stop"] = _shown(said)[:MESSAGE_CHARACTERS]
            self._record(answer, "stopped", "blocking", said)

    def _change(self, answer: HookAnswer) -> None:
        before, after = self.arguments, answer.updated_input
        if before is not None and after is not None and before != after:
            if self.refused:
                self._record(answer, "notice", "notable", "its changed arguments aren't used: nothing was allowed")
            else:
                self._rewrite(answer, before, after)
        if answer.updated_output is not None:
            self._replace(answer, answer.updated_output)

    def _rewrite(self, answer: HookAnswer, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Other arguments: what the hook before it left, or the model's own, is what they change."""
        again = self.changed_by is not None
        self.changed_by = self._record(
            answer,
            "changed_input",
            "warning" if again else "notable",
            "changed arguments that another hook had changed" if again else "changed the arguments",
            before=arguments_digest(before),
            after=arguments_digest(after),
            diff=diff_of(before, after),
        )
        self.arguments = after

    def _replace(self, answer: HookAnswer, output: str) -> None:
        """Another result: what the hook before it left, or the tool's own, is what it replaces."""
        before, after = self.result, for_log((TextPart(text=clean_text(output)),))
        record = self._record(
            answer,
            "changed_output",
            "notable" if not self.replaced else "warning",
            "replaced the result" if not self.replaced else "replaced the result that another hook had replaced",
            before=None if before is None else result_digest(before),
            after=result_digest(after),
        )
        self.replaced[record] = before or ()
        self.result = self.values["output"] = after

    def _learn(self, answer: RulesAnswer) -> None:
        for rule in answer.rules:
            if self.refused:
                self._record(answer, "notice", "warning", f"the rule {rule} is not learned: nothing was allowed")
            elif rule != self.rule:
                self._record(answer, "notice", "warning", not_learned(rule, self.rule))
            else:
                self._record(answer, "notice", "notable", f"has the rule {rule} learned for this session")
                self.values["learned"] = answer.definition

    def _raise(self, verdict: HookVerdict, reason: str) -> None:
        if _RANK[verdict] > _RANK[self.verdict]:
            self.verdict, self.reason = verdict, _shown(reason)[:MESSAGE_CHARACTERS]

    def _record(
        self,
        answer: HookAnswer,
        outcome: Outcome,
        severity: Severity,
        message: str,
        *,
        before: Digest | None = None,
        after: Digest | None = None,
        diff: str = "",
    ) -> HookID:
        hook_id = self.ids.hook()
        self.records.append(
            HookRecord(
                hook_id=hook_id,
                revision=Revision(0),
                phase=self.phase,
                origin_session_id=self.session,
                tool_call_id=self.tool_call_id,
                definition=answer.definition,
                outcome=outcome,
                severity=severity,
                message=_shown(message)[:MESSAGE_CHARACTERS],
                before=before,
                after=after,
                diff=diff,
                duration_ms=answer.duration_ms,
                exit_code=answer.exit_code,
                started_at=answer.started_at,
            )
        )
        return hook_id


def _shown(text: str) -> str:
    """Text for people: surrogate pairs are their character, and whatever acts or can't be seen is made visible."""
    return visible(clean_text(text))


def diff_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """A bounded unified diff of two argument objects, as indented JSON."""
    old, new = (
        json.dumps(v, indent=1, sort_keys=True, ensure_ascii=False)[:200_000].split("\n") for v in (before, after)
    )
    lines = difflib.unified_diff(old, new, "before", "after", lineterm="", n=1)
    text = _shown("\n".join(lines))
    return text if len(text) <= DIFF_CHARACTERS else text[:DIFF_CHARACTERS] + "\n…"


def late_notices(call: HookCall, answer: HookAnswer) -> list[Notice]:
    """What people are told of a hook in the background, which can't decide anything any more."""
    about = call.phase if call.tool_call_id is None else f"{call.phase} of call {call.tool_call_id}"
    said: list[tuple[Severity, str]] = [("warning", warning) for warning in answer.warnings]
    if answer.failure is not None:
        said.append(("warning", f"failed: {answer.failure}"))
    elif ignored := _too_late(answer):
        said.append(("warning", f"runs in the background and decides nothing; not used: {ignored}"))
    if answer.system_message:
        said.append(("notable", answer.system_message))
    name = answer.definition.name
    return [
        Notice(severity=severity, code="hook_late", text=_shown(f"hook {name} ({about}): {text}")[:MESSAGE_CHARACTERS])
        for severity, text in said
    ]


def _too_late(answer: HookAnswer) -> str:
    """What an answer would have decided or added, in the contract's words."""
    found = {
        f"its block: {answer.reason}": answer.blocked,
        f"`continue: false` {answer.stop_reason}": not answer.proceed,
        f"`{answer.permission}` {answer.permission_reason}": answer.permission is not None,
        f"`{answer.request}` {answer.request_message}": answer.request is not None,
        "`updatedInput`": answer.updated_input is not None,
        "`updatedToolOutput`": answer.updated_output is not None,
        "`additionalContext`": bool(answer.additional_context),
        "`retry`": answer.retry,
    }
    return "; ".join(text.strip() for text, holds in found.items() if holds)


__all__ = ["BLOCKING", "NOTHING", "HookVerdict", "Merged", "diff_of", "late_notices", "merge"]
