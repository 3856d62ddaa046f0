"""Valid session logs, made by a seeded random walk, with a plain model of the history that each prefix tells.

`session_log()` is a hypothesis strategy of logs; `random_log(seed, runs)` makes one; `to_rows` turns entries into
stored rows. The walk knows nothing of the fold: what it expects of history it keeps in lists of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.events import codec
from counterfoil.identity import (
    AskID,
    Digest,
    HookID,
    Offset,
    ReviewJob,
    Revision,
    RunID,
    SessionID,
    ToolCallID,
    arguments_digest,
    chain_digest,
    result_digest,
    review_id,
)

CANARY = "PAIRING-CANARY"
"""Stands in every private half that the walk makes, and in no public one."""
SESSION = SessionID("ses_" + "0" * 26)
PERSON = ev.Principal(kind="local", name="ada")
EPOCH = 1_700_000_000_000_000

Told = tuple[str, int, tuple[str, ...]]
"""What the model of history keeps of an item: its sort, its offset, the ids of its calls."""


class Placed(NamedTuple):
    """An entry and the run that it belongs to."""

    entry: ev.Entry
    run_id: RunID | None


@dataclass
class Log:
    """A session's log, and for each prefix (by its length) the history that it tells."""

    rows: list[ev.StoredEvent]
    told: list[list[Told]]


def to_rows(placed: Iterable[Placed], session: SessionID = SESSION) -> list[ev.StoredEvent]:
    """The stored rows of `placed`: offsets from 1, `seq` from 1 in each run, a digest chain."""
    rows: list[ev.StoredEvent] = []
    seqs: dict[RunID, int] = {}
    digest = b""
    for offset, (entry, run_id) in enumerate(placed, 1):
        if run_id is not None:
            seqs[run_id] = seqs.get(run_id, 0) + 1
        row = ev.StoredEvent(
            session_id=session,
            offset=Offset(offset),
            run_id=run_id,
            seq=None if run_id is None else seqs[run_id],
            kind=codec.kind_of(entry.event),
            public=codec.encode_event(entry.event),
            private=codec.encode_private(entry.private),
            digest=b"",
            recorded_at=EPOCH + offset * 1000,
        )
        digest = chain_digest(digest, row_fields(row))
        rows.append(msgspec.structs.replace(row, digest=digest))
    return rows


def row_fields(row: ev.StoredEvent) -> Sequence[bytes]:
    """Everything of a row that its digest covers."""
    return (
        row.session_id.encode(),
        str(row.offset).encode(),
        (row.run_id or "").encode(),
        str(row.seq or 0).encode(),
        row.kind.encode(),
        row.public,
        row.private or b"",
        str(row.recorded_at).encode(),
    )


def created(**changes: Any) -> ev.SessionCreated:
    """The first event of the walk's session."""
    values: dict[str, Any] = {"session_id": SESSION, "owner": PERSON, "workspace": "/w"}
    values |= {"provider": "scripted", "model": "m"}
    return ev.SessionCreated(**(values | changes))


def accepted(call: ToolCallID, arguments: dict[str, Any], position: int = 0, turn: int = 1, **more: Any) -> ev.Entry:
    """`call.accepted` with its private half."""
    event = ev.CallAccepted(
        tool_call_id=call,
        turn=turn,
        position=position,
        tool=more.pop("tool", "Bash"),
        arguments=arguments,
        arguments_digest=arguments_digest(arguments),
        **more,
    )
    return ev.Entry(event, ev.CallReplay(origin="scripted", pairing_id=f"{CANARY} call_{position}"))


@dataclass
class _Call:
    id: ToolCallID
    tool: str
    arguments: dict[str, Any]
    read_only: bool
    problem: str | None
    state: Literal["accepted", "started", "held", "finished"] = "accepted"
    attempt: int = 0
    ask: ev.Ask | None = None
    held: ev.CallHeld | None = None

    @property
    def digest(self) -> Digest:
        return arguments_digest(self.arguments)


class Crash(Exception):
    """The walk's process dies here."""


@dataclass
class Walk:
    """Writes one session. Each method appends what one step of an engine would append."""

    rng: random.Random
    placed: list[Placed] = field(default_factory=list)
    told: list[list[Told]] = field(default_factory=lambda: [[]])
    run_id: RunID | None = None
    turn: int = 0
    attempt: int = 0
    revision: int = 0
    counter: int = 0
    in_turn: bool = False
    inbox: list[Told] = field(default_factory=list)
    open: list[_Call] = field(default_factory=list)
    open_at: int = 0
    children: dict[SessionID, ToolCallID] = field(default_factory=dict)
    teams: set[ToolCallID] = field(default_factory=set)

    # -- plumbing

    def number(self) -> str:
        self.counter += 1
        return f"{self.counter:026d}"

    def chance(self, percent: int) -> bool:
        return self.rng.random() * 100 < percent

    def add(self, event: ev.Event, private: ev.PrivateHalf | None = None) -> int:
        """Append, and keep what history tells after it. Returns the offset."""
        self.placed.append(Placed(ev.Entry(event, private), self.run_id))
        self.told.append(list(self.told[-1]))
        return len(self.placed)

    def text(self) -> str:
        return self.rng.choice(["", "ok", "naïve — 🎟", "a\u2028b\u0085c", "x" * 300, "\ufffd\x00 end"])

    def parts(self) -> tuple[ev.Part, ...]:
        parts: list[ev.Part] = [ev.TextPart(text=self.text())]
        if self.chance(10):
            parts.append(ev.ImagePart(media_type="image/png", data="aGk="))
        if self.chance(10):
            parts.append(ev.FilePart(path="a/b.txt", size=3))
        if self.chance(4):
            parts.append(ev.TextPart(text="é" * 40_000, truncated_bytes=7))
        return tuple(parts)

    def values(self) -> dict[str, Any]:
        return {
            "command": self.text(),
            "n": self.rng.choice([0, -1, 1.5, 2**70, None, True]),
            "deep": {"b": [1, {"c": self.number()}], "a": {}},
        }

    # -- what may come at any time

    def prompt(self, source: ev.PromptSource) -> None:
        offset = self.add(ev.UserPrompt(parts=self.parts(), source=source))
        item: Told = ("prompt", offset, ())
        if self.in_turn:
            self.inbox.append(item)
        else:
            self.told[-1].append(item)

    def aside(self) -> None:
        """Something that may come between any two events of a run."""
        if self.chance(12):
            self.prompt("steer")
        if self.chance(8):
            self.add(ev.Notice(severity="notable", code="n", text=self.text()))
        if self.chance(6):
            body = b'{ "kind": "future.kind", "x": [1,  2], "text": "\\u00e9" }'
            self.add(ev.UnknownEvent(original_kind="future.kind", body=msgspec.Raw(body)))
        if self.chance(4):
            self.add(ev.SessionUpdated(title=self.text(), mode=self.rng.choice(["default", "plan"])))
        if self.chance(2) and self.run_id is not None:
            raise Crash

    def record(self, call: _Call | None, outcome: ev.Outcome, private: ev.PrivateHalf | None = None) -> HookID:
        self.revision += self.rng.choice([1, 1, 1, 3])
        hook_id = HookID("hook_" + self.number())
        self.add(
            ev.HookRecorded(
                record=ev.HookRecord(
                    hook_id=hook_id,
                    revision=Revision(self.revision),
                    phase="PreToolUse",
                    origin_session_id=SESSION,
                    tool_call_id=call.id if call else None,
                    definition=ev.Definition(name="guard"),
                    outcome=outcome,
                    severity="notable",
                )
            ),
            private,
        )
        return hook_id

    def review(self, call: _Call, job: ReviewJob, *states: ev.ReviewState) -> None:
        """One review record in several revisions."""
        rid = review_id(call.id, job)
        for state in states:
            self.revision += 1
            found = state if state in ("clear", "concern", "unresolved", "failed") else None
            usage = ev.Usage(input_tokens=7, requests=1) if found is not None else None
            review = ev.Review(
                review_id=rid,
                job=job,
                state=state,
                finding=found,
                reviewed_digest=call.digest,
                usage=usage,
            )
            self.add(
                ev.HookRecorded(
                    record=ev.HookRecord(
                        hook_id=rid,
                        revision=Revision(self.revision),
                        phase="review",
                        origin_session_id=SESSION,
                        tool_call_id=call.id,
                        definition=ev.Definition(name="checker", tier="operator"),
                        outcome="reviewed",
                        severity="benign",
                        review=review,
                    )
                )
            )
            if self.chance(10):
                self.add(
                    ev.ReviewAcknowledged(
                        review_id=rid,
                        revision=Revision(self.revision),
                        origin_session_id=SESSION,
                        tool_call_id=call.id,
                        decided_by=PERSON,
                        decided_at=EPOCH,
                    )
                )

    # -- asks

    def ask(self, call: _Call, choices: tuple[str, ...] = ("allow", "deny")) -> ev.Ask:
        call.ask = ev.Ask(
            ask_id=AskID("ask_" + self.number()),
            origin_session_id=SESSION,
            tool_call_id=call.id,
            review_id=review_id(call.id, "inbound") if call.state == "held" else None,
            tool=call.tool,
            arguments=call.arguments,
            arguments_digest=call.digest,
            reason="rule",
            choices=choices,
            rule=f"{call.tool}(*)",
            result_digest=call.held.result_digest if call.held is not None else None,
            result_size=call.held.size if call.held is not None else None,
        )
        self.add(ev.AskOpened(ask=call.ask))
        return call.ask

    def settle(self, call: _Call, verdict: ev.Verdict, scope: ev.Scope = "once") -> None:
        assert call.ask is not None
        ask, call.ask = call.ask, None
        receipt = ev.Receipt(
            ask_id=ask.ask_id,
            origin_session_id=SESSION,
            tool_call_id=ask.tool_call_id,
            review_id=ask.review_id,
            verdict=verdict,
            scope=scope,
            decided_by=PERSON,
            decided_at=EPOCH,
            arguments_digest=ask.arguments_digest,
            result_digest=ask.result_digest,
            note=self.text(),
            idempotency_key=self.rng.choice([None, "k"]),
        )
        self.add(ev.AskSettled(receipt=receipt))
        if scope != "once" and ask.rule:
            self.add(ev.GrantChanged(rule=ask.rule, scope=scope, ask_id=ask.ask_id, decided_by=PERSON))

    def withdraw(self, call: _Call) -> None:
        assert call.ask is not None
        ask, call.ask = call.ask, None
        self.add(
            ev.AskWithdrawn(ask_id=ask.ask_id, origin_session_id=SESSION, tool_call_id=call.id, reason="it changed")
        )

    # -- calls

    def change(self, call: _Call) -> None:
        hook_id = self.record(call, "changed_input")
        call.arguments = self.values()
        self.add(
            ev.CallEffective(
                tool_call_id=call.id, arguments=call.arguments, arguments_digest=call.digest, hook_id=hook_id
            )
        )

    def admit(self, call: _Call) -> bool:
        """Bring a call to where it may start, or finish it."""
        if call.problem is not None:
            self.finish(call, "error", "no")
            return False
        if self.chance(15):
            self.change(call)
        if self.chance(10):
            self.record(call, "blocked")
            self.finish(call, "blocked", "no")
            return False
        if self.chance(20):
            self.review(call, "action", "pending", self.rng.choice(["clear", "concern"]))
        if self.chance(35):
            return self.ask_about(call)
        return True

    def ask_about(self, call: _Call) -> bool:
        self.ask(call)
        self.aside()
        if self.chance(20):
            self.withdraw(call)
            self.change(call)
            self.ask(call)
        if self.chance(25):
            self.settle(call, "deny")
            self.finish(call, "denied", "no")
            return False
        self.settle(call, "allow", self.rng.choice(["once", "once", "session", "always"]))
        return True

    def start(self, call: _Call) -> None:
        call.attempt += 1
        call.state = "started"
        self.add(ev.CallStarted(tool_call_id=call.id, arguments_digest=call.digest, attempt=call.attempt))

    def end(self, call: _Call) -> None:
        """What comes after a call has run."""
        if self.chance(8):
            self.delegation(call)
        if self.chance(10):
            self.record(call, "changed_output", ev.ToolOriginal(parts=(ev.TextPart(text=CANARY),)))
        if self.chance(10):
            self.start(call)  # its process died, and it may run again
        if self.chance(15) and not self.hold(call):
            return
        self.finish(call, self.rng.choice(["ok", "ok", "ok", "error"]), "yes")

    def hold(self, call: _Call) -> bool:
        call.state = "held"
        kept = ev.HeldResult(status="ok", parts=self.parts(), executed="yes", duration_ms=3)
        size = len(msgspec.json.encode(kept.parts))
        call.held = ev.CallHeld(
            tool_call_id=call.id,
            review_id=review_id(call.id, "inbound"),
            size=size,
            result_digest=result_digest(kept.parts),
        )
        self.add(call.held, kept)
        if self.chance(30):
            self.review(call, "inbound", "pending", "clear")
        else:
            self.review(call, "inbound", "pending", "concern", "held")
            self.ask(call, ("release", "withhold"))
            self.aside()
            released = self.chance(50)
            self.settle(call, "release" if released else "withhold")
            self.review(call, "inbound", "released" if released else "withheld")
            if not released:
                self.finish(call, "withheld", "yes")
                return False
        call.state = "finished"
        self.finish(call, "ok", "yes", kept.parts)
        return False

    def delegation(self, call: _Call) -> None:
        child = SessionID("ses_" + self.number())
        kind = self.rng.choice([ev.SessionKind.SUBAGENT, ev.SessionKind.TEAM_MEMBER])
        self.add(ev.DelegationStarted(tool_call_id=call.id, child_session_id=child, session_kind=kind, key="1"))
        self.children[child] = call.id
        self.aside()
        for number in range(1, self.rng.choice([1, 2, 3])):
            task = ev.TeamTask(number=number, title=self.text(), state=self.rng.choice(["open", "claimed", "done"]))
            self.add(ev.TeamTaskChanged(tool_call_id=call.id, task=task, changed_by=call.id))
            message = ev.TeamMessageSent(tool_call_id=call.id, number=number, sender="a", text="m", sent_by=call.id)
            if call.id not in self.teams:
                self.add(message)
        self.teams.add(call.id)
        self.surfaced(call, child)
        if self.chance(80):
            self.child_ended(child, "end_turn")

    def surfaced(self, call: _Call, child: SessionID) -> None:
        """An ask of the child, and perhaps its end, stand here too."""
        theirs = ToolCallID("call_" + self.number())
        ask = ev.Ask(
            ask_id=AskID("ask_" + self.number()),
            origin_session_id=child,
            tool_call_id=theirs,
            tool="Bash",
            arguments={},
            arguments_digest=arguments_digest({}),
            reason="rule",
            choices=("allow", "deny"),
        )
        place: dict[str, Any] = {"tool_call_id": call.id, "child_session_id": child, "origin_session_id": child}
        place["recorded_at"] = EPOCH
        if self.chance(60):
            self.add(ev.DelegationSurfaced(child_offset=Offset(5), origin_offset=Offset(5), ask=ask, **place))
            if self.chance(50):
                gone = ev.Withdrawal(ask_id=ask.ask_id, origin_session_id=child, tool_call_id=theirs, reason="r")
                more: dict[str, Any] = {"child_offset": Offset(9), "origin_offset": Offset(9)}
                self.add(ev.DelegationSurfaced(withdrawal=gone, **more, **place))

    def child_ended(self, child: SessionID, stop: ev.StopReason) -> None:
        call = self.children.pop(child)
        usage = ev.Usage(input_tokens=3, requests=1)
        self.add(
            ev.DelegationFinished(
                tool_call_id=call, child_session_id=child, stop_reason=stop, calls=2, refused=1, usage=usage
            )
        )

    def finish(
        self, call: _Call, status: ev.CallStatus, executed: ev.Executed, parts: tuple[ev.Part, ...] | None = None
    ) -> None:
        call.state = "finished"
        told = self.parts() if parts is None else parts
        self.add(ev.CallFinished(tool_call_id=call.id, status=status, parts=told, executed=executed, duration_ms=3))
        if all(c.state == "finished" for c in self.open):
            self.close_turn()

    def close_turn(self) -> None:
        self.told[-1].append(("turn", self.open_at, tuple(c.id for c in self.open)))
        self.told[-1].extend(self.inbox)
        self.inbox, self.open, self.in_turn = [], [], False

    # -- turns and runs

    def one_turn(self, calls: int) -> None:
        self.turn += 1
        self.attempt = 0
        self.begin_turn()
        while self.chance(12):
            if self.chance(60):
                self.add(
                    ev.TurnRejected(turn=self.turn, attempt=self.attempt, code="duplicate_pairing", reason="two alike")
                )
                self.told[-1].extend(self.inbox)
                self.inbox, self.in_turn = [], False
                self.aside()
            self.begin_turn()
        self.accept(calls)
        self.dispatch()

    def begin_turn(self) -> None:
        self.attempt += 1
        self.add(ev.TurnStarted(turn=self.turn, attempt=self.attempt, provider="scripted", model="m"))
        self.in_turn = True
        self.aside()

    def accept(self, calls: int) -> None:
        wire = msgspec.Raw(b'{"id": "' + CANARY.encode() + b'",  "sig":"\\u00e9" }')
        replay = ev.AssistantReplay(origin="scripted", wire=wire)
        self.open_at = self.add(ev.AssistantMessage(turn=self.turn, text=self.text()), replay)
        self.open = []
        for position in range(calls):
            read_only, problem = self.chance(50), "not an object" if self.chance(6) else None
            arguments = {} if problem else self.values()
            tool = "Read" if read_only else "Bash"
            call = _Call(ToolCallID("call_" + self.number()), tool, arguments, read_only, problem)
            entry = accepted(call.id, arguments, position, self.turn, tool=tool, read_only=read_only, problem=problem)
            self.open.append(call)
            self.add(entry.event, entry.private)
        usage = ev.Usage(input_tokens=100, output_tokens=5, requests=1)
        stop: ev.TurnStop = "tool_use" if calls else "end_turn"
        self.add(ev.TurnFinished(turn=self.turn, usage=usage, stop_reason=stop, model="m"))
        if not calls:
            self.close_turn()

    def dispatch(self) -> None:
        """Calls in order; consecutive reads start together and end in call order."""
        waiting = list(self.open)
        while waiting:
            size = 1
            while waiting[0].read_only and size < len(waiting) and waiting[size].read_only:
                size += 1
            batch, waiting = waiting[:size], waiting[size:]
            admitted = [call for call in batch if self.admit(call)]
            for call in admitted:
                self.start(call)
            for call in admitted:
                self.aside()
                self.end(call)

    def compact(self) -> None:
        items = self.told[-1]
        if len(items) < 2:
            return
        end = self.rng.randrange(1, len(items) + 1)
        through = items[end - 1][1]
        self.add(
            ev.CompactionDone(
                summary="s", replaced_from=Offset(1), replaced_through=Offset(through), archive=f"log:1-{through}"
            )
        )
        self.told[-1] = [("summary", through, ()), *items[end:]]

    def close_after_crash(self) -> None:
        for child in list(self.children):
            self.child_ended(child, "interrupted")
        for call in self.open:
            if call.ask is not None:
                self.withdraw(call)
        for call in list(self.open):
            if call.state == "held":
                self.finish(call, "withheld", "yes")
            elif call.state != "finished":
                self.finish(call, "interrupted", "unknown" if call.state == "started" else "no")

    def run(self) -> None:
        self.run_id = RunID("run_" + self.number())
        self.turn = 0
        self.add(ev.RunStarted(run_id=self.run_id))
        stop: ev.StopReason = "end_turn"
        try:
            self.prompt("human")
            for _ in range(self.rng.choice([0, 1, 1, 2, 3])):
                self.one_turn(self.rng.choice([1, 1, 2, 3, 4]))
                self.aside()
                if self.chance(20):
                    self.compact()
            self.one_turn(0)
        except Crash:
            stop = "interrupted"
            self.close_after_crash()
        for child in list(self.children):
            self.child_ended(child, "end_turn")
        self.add(ev.RunFinished(run_id=self.run_id, stop_reason=stop, turns=self.turn, text="done"))
        self.told[-1].extend(self.inbox)
        self.inbox, self.in_turn = [], False
        self.run_id = None

    def session(self, runs: int) -> Log:
        self.add(created())
        for _ in range(runs):
            self.aside()
            if self.chance(10):
                self.compact()
            self.run()
        return Log(rows=to_rows(self.placed), told=self.told)


def random_log(seed: int, runs: int = 3) -> Log:
    """One valid log: the same for the same arguments."""
    return Walk(random.Random(seed)).session(runs)


def session_log(max_runs: int = 4) -> st.SearchStrategy[Log]:
    """Valid logs."""
    return st.builds(random_log, st.integers(0, 2**32 - 1), st.integers(1, max_runs))
