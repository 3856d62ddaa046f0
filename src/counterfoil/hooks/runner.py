"""The configured hooks of one session: which match, run side by side, answered in configuration order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from counterfoil.hooks.answer import answer
from counterfoil.hooks.command import run_command
from counterfoil.hooks.definition import HookDefinition, Matcher, compile_condition, compile_matcher
from counterfoil.hooks.others import AskModel, run_http, run_prompt, run_python, url_allowed
from counterfoil.hooks.variables import Variables, Written
from counterfoil.policy.paths import Place
from counterfoil.ports import HookAnswer, HookCall, HookPhase

MAX_PARALLEL = 16
MAX_BACKGROUND = 64
_CLOSING = 5.0
"""Seconds that background hooks get at the end."""
_TIERS = ("operator", "builtin", "user", "project")
_HEARD_AT = frozenset({"PostToolBatch", "Stop", "UserPromptSubmit", "SessionEnd"})
"""Places where the engine comes by often: there what background hooks said is asked for, if there is any."""


class _Ready(msgspec.Struct, frozen=True):
    definition: HookDefinition
    matches: Matcher
    holds: Callable[[HookCall], bool]


class Hooks:
    """A `HookRunner`. `environment` is what commands start from: without secrets already.

    `allowed_urls`: where a project's HTTP hooks may post to; those of operator and user are their own word for it.
    `variables` takes what SessionStart hooks write into `CLAUDE_ENV_FILE`.
    Raises `ConfigError` where a matcher or an `if` can't be compiled.
    """

    def __init__(
        self,
        definitions: Sequence[HookDefinition],
        *,
        cwd: str,
        environment: Mapping[str, str],
        place: Place,
        ask_model: AskModel | None = None,
        allowed_urls: Collection[str] = (),
        variables: Variables | None = None,
    ) -> None:
        self._by_phase: dict[str, list[_Ready]] = {}
        for definition in definitions:
            ready = _Ready(definition, compile_matcher(definition), compile_condition(definition, place))
            self._by_phase.setdefault(definition.phase, []).append(ready)
        self._urls = {*allowed_urls, *(d.url for d in definitions if d.kind == "http" and d.tier != "project")}
        self._written = Written(variables) if variables is not None else None
        self._late: list[tuple[HookCall, HookAnswer]] = []
        self._cwd = cwd
        self._environment = dict(environment) | {"CLAUDE_PROJECT_DIR": cwd, "COUNTERFOIL_PROJECT_DIR": cwd}
        self._ask_model = ask_model
        self._room = asyncio.Semaphore(MAX_PARALLEL)
        self._room_behind = asyncio.Semaphore(MAX_PARALLEL)
        self._done_once: set[tuple[str, int]] = set()
        self._background: dict[asyncio.Task[None], tuple[HookDefinition, HookCall]] = {}

    def wants(self, phase: HookPhase) -> bool:
        behind = self._late or (phase == "SessionEnd" and self._background)
        return phase in self._by_phase or (phase in _HEARD_AT and bool(behind))

    async def fire(self, call: HookCall) -> list[HookAnswer]:
        matching = self._matching(call)
        if not matching:
            return []
        try:
            payload = msgspec.json.encode(call.payload)
        except (TypeError, UnicodeEncodeError) as fault:
            return [answer(d, failure=f"the input can't be written as JSON: {fault}") for d in matching]
        started: list[HookAnswer] = []
        tasks: list[tuple[HookDefinition, asyncio.Task[HookAnswer]]] = []
        for definition in matching:
            if definition.background:
                started += self._start_background(definition, call, payload)
            else:
                work = self._timed(definition, call, payload, self._room)
                tasks.append((definition, asyncio.ensure_future(work)))
        try:
            return [*started, *[self._with_variables(definition, await task) for definition, task in tasks]]
        finally:
            for _, task in tasks:
                task.cancel()
            await asyncio.gather(*(task for _, task in tasks), return_exceptions=True)

    def _with_variables(self, definition: HookDefinition, said: HookAnswer) -> HookAnswer:
        return said if self._written is None else self._written.taken(definition, said)

    def _matching(self, call: HookCall) -> list[HookDefinition]:
        """The hooks that speak now. The same handler under several matchers speaks once, as its strictest wants."""
        found: dict[tuple[str, ...], HookDefinition] = {}
        for n, ready in enumerate(self._by_phase.get(call.phase, ())):
            definition = ready.definition
            if (call.phase, n) in self._done_once or not ready.matches(call.match) or not ready.holds(call):
                continue
            if definition.once:
                self._done_once.add((call.phase, n))
            before = found.get(definition.handler)
            if before is None or _strictness(definition) < _strictness(before):
                found[definition.handler] = definition
        return list(found.values())

    def _start_background(self, definition: HookDefinition, call: HookCall, payload: bytes) -> list[HookAnswer]:
        if len(self._background) >= MAX_BACKGROUND:
            return [answer(definition, failure=f"{MAX_BACKGROUND} hooks run in the background already")]
        task = asyncio.ensure_future(self._behind(definition, call, payload))
        self._background[task] = definition, call
        task.add_done_callback(lambda done: self._background.pop(done, None))
        return []

    async def _behind(self, definition: HookDefinition, call: HookCall, payload: bytes) -> None:
        """A background hook: in a room of its own, so that it never keeps one waiting that decides."""
        said = await self._timed(definition, call, payload, self._room_behind)
        self._late.append((call, self._with_variables(definition, said)))

    async def _timed(
        self, definition: HookDefinition, call: HookCall, payload: bytes, room: asyncio.Semaphore
    ) -> HookAnswer:
        """Run within the hook's time. A command ends itself and its group; what it needs for that isn't counted."""
        async with room:
            began, clock = time.time_ns() // 1000, time.monotonic()
            limit = definition.timeout + (_CLOSING if definition.kind == "command" else 0)
            try:
                async with asyncio.timeout(limit) as bound:
                    said = await self._run(definition, call, payload)
            except TimeoutError as fault:
                slow = f"did not end within {definition.timeout:g} s"
                said = answer(definition, failure=slow if bound.expired() else f"TimeoutError: {str(fault)[:300]}")
            except Exception as fault:  # a hook's fault is an answer, whatever it is
                said = answer(definition, failure=f"{type(fault).__name__}: {str(fault)[:300]}")
            took = int((time.monotonic() - clock) * 1000)
            return msgspec.structs.replace(said, started_at=began, duration_ms=took)

    async def _run(self, definition: HookDefinition, call: HookCall, payload: bytes) -> HookAnswer:
        if definition.kind == "http":
            if not url_allowed(definition.url, self._urls):
                return answer(definition, failure="neither the operator's nor the user's configuration allows this URL")
            return await run_http(definition, payload)
        if definition.kind == "python":
            return await run_python(definition, payload)
        if definition.kind == "prompt":
            return await run_prompt(definition, payload, self._ask_model)
        environment = self._environment | {"COUNTERFOIL_SESSION_ID": str(call.payload.get("session_id", ""))}
        if call.tool_call_id is not None:
            environment["COUNTERFOIL_TOOL_CALL_ID"] = call.tool_call_id
        if self._written is not None and call.phase == "SessionStart":
            return await self._written.run(definition, payload, cwd=self._cwd, environment=environment)
        return await run_command(definition, payload, cwd=self._cwd, environment=environment)

    def late(self) -> list[tuple[HookCall, HookAnswer]]:
        """What background hooks came to since somebody last asked, each with the firing that it belongs to."""
        heard, self._late = self._late, []
        return heard

    async def close(self) -> None:
        """Give what runs in the background its time, then end it: `late` tells of that too."""
        running = dict(self._background)
        try:
            if running:
                await asyncio.wait(running, timeout=_CLOSING)
        finally:
            ended = [about for task, about in running.items() if task.cancel()]
            await asyncio.gather(*running, return_exceptions=True)
            self._late += [(call, answer(of, failure="was ended: the session is closed")) for of, call in ended]


def _strictness(definition: HookDefinition) -> tuple[bool, int, bool]:
    """Lower is stricter: one that decides, of the tier that nobody below it may weaken, that blocks when it fails."""
    return definition.background, _TIERS.index(definition.tier), definition.on_failure != "block"
