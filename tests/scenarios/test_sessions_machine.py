"""A state machine over driven sessions: whatever happens, in whatever order, the promises of identity hold."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from counterfoil import events as ev
from counterfoil.engine import EngineSettings, Session
from counterfoil.events.codec import envelope_of, event_of
from counterfoil.hooks import HookDefinition, Hooks
from counterfoil.identity import START, Offset, SessionID, result_digest, review_id
from counterfoil.policy.paths import Place
from counterfoil.policy.permissions import Rules
from counterfoil.ports import EventStore, ModelSettings
from counterfoil.providers import anthropic, openai, openai_chat
from counterfoil.state import History, PromptItem, SessionState, TurnItem, decode_snapshot, encode_snapshot, fold
from counterfoil.stores.rows import verify
from tests.scenarios.improviser import Died, DyingDatabase, DyingMemory, Fuse, Improviser
from tests.support.harness import ME, CountingTool, Rig
from tests.support.reviewer import FakeReviewer
from tests.support.reviewer import rule as policy
from tests.support.strategies import SOAK, examples
from tests.support.strict import check_chat, check_messages, check_responses

T = TypeVar("T")
TOOLS = ("look", "put", "act", "asked", "fails", "nope")
calls = st.lists(
    st.tuples(
        st.sampled_from(TOOLS),
        st.sampled_from(["call_0", "call_1", "call_2", "functions.look:0", "é ∆ \" '", ""]),
        st.sampled_from([{}, {"n": 1}, {"n": 2}, None]),
    ),
    min_size=1,
    max_size=4,
)
plans = st.lists(st.one_of(calls, st.sampled_from(["text", "error", "empty", "cut"]), st.just("fatal")), max_size=4)
reactions = st.sampled_from(["allow", "deny", "park", "cancel"])
nudges = st.sampled_from(["", "steer", "compact", "plan"])
"""What somebody does each time when a call starts."""


class AtOnce(ThreadPoolExecutor):
    """Does what is asked for in the caller's thread, so that the order of things doesn't hang on threads."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as fault:
            done.set_exception(fault)
        return done


async def speak(event: dict[str, Any]) -> dict[str, Any] | None:
    """A hook that publishes a record for every other kind of call, from reads side by side too."""
    if event["tool_name"] in ("act", "fails"):
        return None
    name = event["hook_event_name"]
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": f"{event['tool_name']} was noted"}}


SPEAKS = HookDefinition(name="pre", tier="user", phase="PreToolUse", kind="python", entry=f"{__name__}:speak")
SPEAKS_AFTER = HookDefinition(name="post", tier="user", phase="PostToolUse", kind="python", entry=f"{__name__}:speak")


class Sessions(RuleBasedStateMachine):
    """One session that is prompted, answered, parked, cancelled, killed, reopened, compacted and forked."""

    reviewer: FakeReviewer | None = None
    steady = True
    """Whether each step of the event loop is the same each time: then a run can be stopped at a numbered one."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(AtOnce())
        self.fuse = Fuse()
        self.store = self.new_store()
        self.model = Improviser()
        self.ran: list[tuple[str, str]] = []
        self.live: dict[int, ev.Envelope] = {}
        self.sent: dict[str, list[int]] = {}
        tools = [
            CountingTool("look", read_only=True, behaviour=self._note("look")),
            CountingTool("put", idempotent=True, behaviour=self._note("put")),
            CountingTool("act", behaviour=self._note("act")),
            CountingTool("asked", behaviour=self._note("asked")),
            CountingTool("fails", behaviour=self._note("fails", fail=True)),
        ]
        rules = Rules(allow=("look", "put", "act", "fails"), ask=("asked",))
        self.rig = Rig(
            {},
            *tools,
            store=self.store,
            provider=lambda meta: self.model,
            hooks=lambda meta: Hooks([SPEAKS, SPEAKS_AFTER], cwd="/", environment={}, place=Place()),
            settings=EngineSettings(rules=rules, compaction_keep=2),
            reviewer=self.reviewer,
        )
        self.limits = ev.Limits(max_repeated_turns=0, max_turns=30)
        self.session: Session = self.do(self.rig.session("default", self.limits))

    def new_store(self) -> EventStore:
        return DyingMemory(self.fuse)

    def _note(self, tool: str, *, fail: bool = False) -> Any:
        async def run(ctx: Any, arguments: Any) -> str:
            self.ran.append((tool, ctx.tool_call_id))
            rows = await self.store.read(ctx.session_id, START, 1_000_000)
            started = {e.tool_call_id for e in map(event_of, rows) if isinstance(e, ev.CallStarted)}
            assert ctx.tool_call_id in started, "a tool ran whose start isn't durable"
            if fail:
                raise RuntimeError("as planned")
            return f"{tool} done"

        return run

    def do(self, work: Awaitable[T]) -> T:
        """Run something to its end; whatever it left behind is reaped, as a dead process would leave nothing."""

        async def bounded() -> T:
            try:
                return await asyncio.wait_for(work, 5)
            finally:
                left = asyncio.all_tasks() - {asyncio.current_task()}
                for task in left:
                    task.cancel()
                await asyncio.gather(*left, return_exceptions=True)

        return self.loop.run_until_complete(bounded())

    def rows(self) -> list[ev.StoredEvent]:
        return self.do(self.store.read(self.session.id, START, 1_000_000))

    def log(self) -> list[ev.Event]:
        return [event_of(row) for row in self.rows()]

    # ---- what happens ----

    async def _drive(self, work: Any, reaction: str, nudge: str, stop: tuple[int, bool] | None) -> None:
        session = self.session
        passive = session.watch()

        async def watch() -> None:
            async with session.watch() as stream:
                for ask_id in list(session.state.asks):
                    # who parks or cancels before the run has come to its ask changes nothing
                    while ask_id in session.state.asks and ask_id not in session._ctx.waiters:  # noqa: ASYNC110
                        await asyncio.sleep(0)
                    if ask_id in session.state.asks:
                        await self._react(session, ask_id, reaction)
                async for envelope in stream:
                    if isinstance(envelope.event, ev.AskOpened):
                        await self._react(session, envelope.event.ask.ask_id, reaction)
                    if isinstance(envelope.event, ev.CallStarted):
                        await self._nudge(session, nudge)

        watcher = asyncio.ensure_future(watch())
        await asyncio.sleep(0)
        driving = asyncio.ensure_future(work())
        stopping = asyncio.ensure_future(self._stop(driving, stop))
        await asyncio.wait([watcher, driving], return_when=asyncio.FIRST_COMPLETED)
        if watcher.done() and (fault := watcher.exception()) is not None:
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)
            raise fault
        try:
            outcome = await driving
            started = [e.run_id for e in await self.rig.log(session.id) if isinstance(e, ev.RunStarted)]
            assert outcome.run_id == started[-1] and (outcome.parked == (session.state.run is not None))
        except asyncio.CancelledError:
            assert stop is not None and stop[1], "only a caller that is cancelled sees its cancellation"
        finally:
            watcher.cancel()
            stopping.cancel()
            await asyncio.gather(watcher, stopping, return_exceptions=True)
            passive.end()
            self._see([envelope async for envelope in passive])
        head = await self.store.head(session.id)
        assert max(self.live, default=head.offset) == head.offset, "all that was stored was sent"

    async def _stop(self, driving: asyncio.Future[Any], stop: tuple[int, bool] | None) -> None:
        """Cancel the run, or its caller (`hard`), some steps of the loop later: at whatever await it is then."""
        if stop is None or not self.steady:
            return
        steps, hard = stop
        for _ in range(steps):
            await asyncio.sleep(0)
        if hard:
            driving.cancel()
        else:
            self.session.cancel()

    async def _nudge(self, session: Session, nudge: str) -> None:
        if nudge == "steer" and session.state.run is not None:
            await session.steer("also this")
        elif nudge == "compact":
            await session.compact()
        elif nudge == "plan":
            await session.set_mode("plan")

    async def _react(self, session: Session, ask_id: Any, reaction: str) -> None:
        if reaction == "park":
            session.park()
        elif reaction == "cancel":
            session.cancel()
        else:
            await session.answer(ask_id, verdict_of(session.state.asks[ask_id], reaction), principal=ME)

    def _see(self, envelopes: list[ev.Envelope]) -> None:
        offsets = [envelope.offset for envelope in envelopes if envelope.offset is not None]
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets))) if offsets else True, "nothing is left out"
        for envelope in envelopes:
            if envelope.offset is not None:
                self.live[envelope.offset] = envelope
            if envelope.run_id is not None and envelope.seq is not None:
                numbers = self.sent.setdefault(envelope.run_id, [])
                assert not numbers or envelope.seq > numbers[-1], "a number of a run's stream came twice or went back"
                numbers.append(envelope.seq)

    def _go(self, work: Any, reaction: str, nudge: str = "", stop: tuple[int, bool] | None = None) -> None:
        try:
            self.do(self._drive(work, reaction, nudge, stop))
        except Died:
            self.do(self.fuse.bury(self.store))
            self._reopen()

    def _reopen(self) -> None:
        self.live.clear()
        self.session = self.do(self.rig.engine.open(self.session.id))

    @rule(plan=plans, reaction=reactions, nudge=nudges)
    def prompt(self, plan: list[Any], reaction: str, nudge: str) -> None:
        self.model.plan = list(plan)
        self._go(lambda: self.session.prompt("go"), reaction, nudge)

    @rule(plan=plans, reaction=reactions, nudge=nudges, steps=st.integers(0, 120), hard=st.booleans())
    def prompt_and_cancel(self, plan: list[Any], reaction: str, nudge: str, steps: int, hard: bool) -> None:
        self.model.plan = list(plan)
        self._go(lambda: self.session.prompt("go"), reaction, nudge, (steps, hard))
        assert self.session.state.run is None or self.session.state.asks, "a run that is over is finished, or parked"

    @rule(plan=plans, reaction=reactions, fuse=st.integers(1, 12), after=st.booleans())
    def prompt_and_die(self, plan: list[Any], reaction: str, fuse: int, after: bool) -> None:
        self.model.plan = list(plan)
        self.fuse.left, self.fuse.after = fuse, after
        self._go(lambda: self.session.prompt("go"), reaction)
        self.fuse.left = None

    @precondition(lambda self: self.session.state.run is not None)
    @rule(reaction=reactions, nudge=nudges, stop=st.none() | st.tuples(st.integers(0, 60), st.booleans()))
    def resume(self, reaction: str, nudge: str, stop: tuple[int, bool] | None) -> None:
        self._go(lambda: self.session.resume(), reaction, nudge, stop)

    @precondition(lambda self: self.session.state.asks)
    @rule(verdict=st.sampled_from(["allow", "deny"]))
    def answer(self, verdict: Any) -> None:
        ask = next(iter(self.session.state.asks.values()))
        self.do(self.session.answer(ask.ask_id, verdict_of(ask, verdict), principal=ME))

    @rule()
    def compact(self) -> None:
        self.do(self.session.compact())

    @rule(mode=st.sampled_from(["default", "bypass", "plan", "dont_ask"]))
    def set_mode(self, mode: Any) -> None:
        self.do(self.session.set_mode(mode))

    @rule()
    def close_and_reopen(self) -> None:
        self.do(self.session.close())
        self._reopen()

    @rule(share=st.floats(0, 1))
    def fork(self, share: float) -> None:
        head = self.do(self.store.head(self.session.id)).offset
        made = self.do(self.rig.engine.fork(self.session.id, at=Offset(max(1, int(share * head)))))
        state = self.do(self.rig.engine.load(made))
        assert state.run is None and not state.asks
        self.do(self._drive_fork(made))

    async def _drive_fork(self, made: SessionID) -> None:
        """The copy goes on by itself: what is called in it is new, and its history is valid."""
        self.model.plan = [[("act", "call_0", {}), ("look", "call_1", {})]]
        if self.reviewer is not None:
            self.reviewer.say(["clear"])
        async with await self.rig.engine.open(made) as session:
            assert (await session.prompt("go on")).stop_reason in ("end_turn", "max_turns")
            check_history_everywhere(session.state)
        here = {e.tool_call_id for e in await self.rig.log(made) if isinstance(e, ev.CallAccepted)}
        there = {e.tool_call_id for e in await self.rig.log(self.session.id) if isinstance(e, ev.CallAccepted)}
        assert len(here - there) == 2
        await self.store.delete(await self.store.acquire(made, self.rig.engine.parts.holder))

    # ---- what holds ----

    @invariant()
    def the_chain_holds_and_the_fold_is_the_state(self) -> None:
        rows = self.rows()
        assert verify(rows) is None
        assert encode_snapshot(fold(rows)) == encode_snapshot(self.session.state)

    @invariant()
    def ids_are_new_and_ends_are_single(self) -> None:
        log = self.log()
        accepted = [e.tool_call_id for e in log if isinstance(e, ev.CallAccepted)]
        finished = [e.tool_call_id for e in log if isinstance(e, ev.CallFinished)]
        assert len(set(accepted)) == len(accepted) and len(set(finished)) == len(finished)
        open_calls = {c.tool_call_id for c in self.session.state.open_calls()}
        assert set(accepted) - set(finished) == open_calls
        started = [e.run_id for e in log if isinstance(e, ev.RunStarted)]
        ended = [e.run_id for e in log if isinstance(e, ev.RunFinished)]
        run = self.session.state.run
        assert started == [*ended, *([run.run_id] if run is not None else [])]

    @invariant()
    def revisions_only_grow(self) -> None:
        numbers = [e.record.revision for e in self.log() if isinstance(e, ev.HookRecorded)]
        assert numbers == sorted(set(numbers))
        assert self.session.state.revision == max(numbers, default=0)

    @invariant()
    def nothing_runs_twice_and_nothing_runs_unapproved(self) -> None:
        times = Counter(self.ran)
        assert all(n == 1 for (tool, _), n in times.items() if tool in ("act", "asked", "fails"))
        log = self.log()
        allowed = {
            (e.receipt.tool_call_id, e.receipt.arguments_digest)
            for e in log
            if isinstance(e, ev.AskSettled) and e.receipt.verdict == "allow"
        }
        asked = {e.tool_call_id for e in log if isinstance(e, ev.CallAccepted) and e.tool == "asked"}
        for event in log:
            if isinstance(event, ev.CallStarted) and event.tool_call_id in asked:
                cleared = event.tool_call_id in self.cleared()
                assert cleared or (event.tool_call_id, event.arguments_digest) in allowed
        for event in log:
            if isinstance(event, ev.CallFinished) and event.executed == "no":
                assert event.tool_call_id not in {call_id for _, call_id in self.ran}

    def cleared(self) -> set[Any]:
        """Calls whose ask something else than a person may answer."""
        return set()

    @invariant()
    def every_history_is_valid_for_every_provider(self) -> None:
        check_history_everywhere(self.session.state)

    @invariant()
    def live_is_what_is_stored(self) -> None:
        stored = {row.offset: envelope_of(row) for row in self.rows()}
        assert all(stored.get(Offset(offset)) == envelope for offset, envelope in self.live.items())

    def teardown(self) -> None:
        self.every_prefix()
        self.do(self.session.close())
        self.do(self.store.close())
        self.loop.close()

    def every_prefix(self) -> None:
        """The snapshot of a prefix and the rows after it give what the whole log gives. In the short form: of some."""
        rows = self.rows()
        whole, state = encode_snapshot(fold(rows)), None
        step = 1 if SOAK else max(1, len(rows) // 8)
        for at, row in enumerate(rows[:-1], 1):
            state = fold([row], state)
            if at % step == 0:
                assert encode_snapshot(fold(rows[at:], decode_snapshot(encode_snapshot(state)))) == whole


def verdict_of(ask: ev.Ask, reaction: str) -> ev.Verdict:
    """`allow` or `deny`, in the words of the ask."""
    yes, no = ask.choices
    return yes if reaction == "allow" else no  # type: ignore[return-value]


class ReviewedSessions(Sessions):
    """The same with reviews before starts and of results, whose findings change all the time."""

    def __init__(self) -> None:
        self.reviewer = FakeReviewer(
            policy("action", tools=("act", "put")),
            policy("inbound", tools=("look", "act", "fails")),
            policy("permission", tools=("asked",)),
            findings=("clear",),
            files={"f": "0"},
        )
        super().__init__()

    @rule(findings=st.lists(st.sampled_from(["clear", "concern", "unresolved", "failed"]), min_size=1, max_size=6))
    def the_checker_will_say(self, findings: list[str]) -> None:
        assert self.reviewer is not None
        self.reviewer.say(findings)

    @rule(touched=st.integers(0, 4))
    def a_reviewed_file_changes_while_it_is_checked(self, touched: int) -> None:
        assert self.reviewer is not None
        reviewer, at = self.reviewer, len(self.reviewer.seen) + touched

        def touch(subject: Any) -> None:
            if len(reviewer.seen) == at:
                reviewer.files["f"] = str(at)

        reviewer.before = touch

    @invariant()
    def a_result_with_a_concern_leaves_only_by_a_release(self) -> None:
        log = self.log()
        held = {e.tool_call_id: e.result_digest for e in log if isinstance(e, ev.CallHeld)}
        released = {
            (e.receipt.tool_call_id, e.receipt.result_digest)
            for e in log
            if isinstance(e, ev.AskSettled) and e.receipt.verdict == "release"
        }
        advisory = {r.hook_id for r in self.reviews() if r.review is not None and r.review.enforcement == "advisory"}
        objected = {
            r.tool_call_id
            for r in self.reviews()
            if r.review is not None and r.review.job == "inbound" and r.review.finding not in (None, "clear")
        }
        for e in log:
            if isinstance(e, ev.CallFinished) and e.status == "ok" and e.tool_call_id in objected:
                digest = held[e.tool_call_id]
                assert result_digest(e.parts) == digest
                rid = review_id(e.tool_call_id, "inbound")
                assert (e.tool_call_id, digest) in released or rid in advisory

    @invariant()
    def a_call_with_a_concern_starts_only_by_an_approval(self) -> None:
        log = self.log()
        newest: dict[str, ev.HookRecord] = {}
        for e in log:
            if isinstance(e, ev.HookRecorded) and e.record.review is not None and e.record.review.job == "action":
                newest[str(e.record.tool_call_id)] = e.record
            elif isinstance(e, ev.CallStarted) and e.tool_call_id in newest:
                review = newest[e.tool_call_id].review
                assert review is not None
                assert review.state in ("clear", "released") or review.enforcement == "advisory", review.state

    @invariant()
    def no_review_stays_pending_once_its_call_is_over(self) -> None:
        open_calls = {c.tool_call_id for c in self.session.state.open_calls()}
        newest = {r.hook_id: r for r in self.reviews()}
        for record in newest.values():
            assert record.review is not None
            if record.tool_call_id not in open_calls:
                assert record.review.state not in ("pending", "asked", "held")

    def cleared(self) -> set[Any]:
        told = [(r.tool_call_id, r.review) for r in self.reviews() if r.review is not None]
        return {call_id for call_id, review in told if (review.job, review.finding) == ("permission", "clear")}

    def reviews(self) -> list[ev.HookRecord]:
        return [e.record for e in self.log() if isinstance(e, ev.HookRecorded) and e.record.review is not None]


def check_history_everywhere(state: SessionState) -> None:
    """What the model was told is valid for each provider: whole turns, results in call order."""
    for item in state.history.items:
        if isinstance(item, TurnItem):
            assert [c.tool_call_id for c in item.calls] == [r.tool_call_id for r in item.results]
    prompt = PromptItem(offset=Offset(state.offset + 1), parts=ev.text_parts("next"))
    following = History(items=[*state.history.items, prompt])
    given: Any = (following, (), ModelSettings(model="m"))
    check_chat(_plain(openai_chat.request(*given)))
    check_responses(_plain(openai.request(*given)))
    check_messages(_plain(anthropic.request(*given)))


def _plain(body: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body))


class SessionsOnDisk(Sessions):
    """The same on a database. Its threads take their time, so that nothing is stopped at a numbered step."""

    steady = False

    def new_store(self) -> EventStore:
        self.folder = tempfile.TemporaryDirectory(prefix="counterfoil-machine-")
        return DyingDatabase(Path(self.folder.name), self.fuse)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestSessions = Sessions.TestCase
TestSessions.settings = hypothesis_settings(examples(60), stateful_step_count=30, deadline=None)

TestReviewedSessions = ReviewedSessions.TestCase
TestReviewedSessions.settings = hypothesis_settings(examples(50), stateful_step_count=25, deadline=None)

if SOAK:
    TestSessionsOnDisk = SessionsOnDisk.TestCase
    TestSessionsOnDisk.settings = hypothesis_settings(examples(5), stateful_step_count=20, deadline=None)
