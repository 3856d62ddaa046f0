"""The configured hooks of one session: which match, run side by side, answered in configuration order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from counterfoil.hooks.answer import answer
from counterfoil.hooks.command import run_command
from counterfoil.hooks.definition import HookDefinition, Matcher, compile_condition, compile_matcher
from counterfoil.hooks.others import AskModel, run_http, run_prompt, run_python
from counterfoil.policy.paths import Place
from counterfoil.ports import HookAnswer, HookCall, HookPhase

MAX_PARALLEL = 16
MAX_BACKGROUND = 64


class _Ready(msgspec.Struct, frozen=True):
    definition: HookDefinition
    matches: Matcher
    holds: Callable[[HookCall], bool]


class Hooks:
    """A `HookRunner`. `environment` is what commands start from: without secrets already.

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
    ) -> None:
        self._by_phase: dict[str, list[_Ready]] = {}
        seen: set[tuple[str, str, str]] = set()
        for definition in definitions:
            key = (*definition.handler[:2], f"{definition.matcher}\0{definition.condition}\0{definition.handler[2]}")
            if key in seen:
                continue
            seen.add(key)
            ready = _Ready(definition, compile_matcher(definition), compile_condition(definition, place))
            self._by_phase.setdefault(definition.phase, []).append(ready)
        self._cwd = cwd
        self._environment = dict(environment) | {"CLAUDE_PROJECT_DIR": cwd, "COUNTERFOIL_PROJECT_DIR": cwd}
        self._ask_model = ask_model
        self._room = asyncio.Semaphore(MAX_PARALLEL)
        self._done_once: set[int] = set()
        self._background: set[asyncio.Task[HookAnswer]] = set()

    def wants(self, phase: HookPhase) -> bool:
        return phase in self._by_phase

    async def fire(self, call: HookCall) -> list[HookAnswer]:
        matching = self._matching(call)
        if not matching:
            return []
        try:
            payload = msgspec.json.encode(call.payload)
        except (TypeError, UnicodeEncodeError) as fault:
            return [answer(d, failure=f"the input can't be written as JSON: {fault}") for d in matching]
        started: list[HookAnswer] = []
        tasks: list[asyncio.Task[HookAnswer]] = []
        for definition in matching:
            if definition.background:
                started += self._start_background(definition, call, payload)
            else:
                tasks.append(asyncio.ensure_future(self._timed(definition, call, payload)))
        try:
            return [*started, *[await task for task in tasks]]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _matching(self, call: HookCall) -> list[HookDefinition]:
        """The hooks that speak now. The same handler under several matchers speaks once."""
        found: dict[tuple[str, str, str], HookDefinition] = {}
        for ready in self._by_phase.get(call.phase, ()):
            definition = ready.definition
            if id(ready) in self._done_once or not ready.matches(call.match) or not ready.holds(call):
                continue
            if definition.once:
                self._done_once.add(id(ready))
            found.setdefault(definition.handler, definition)
        return list(found.values())

    def _start_background(self, definition: HookDefinition, call: HookCall, payload: bytes) -> list[HookAnswer]:
        if len(self._background) >= MAX_BACKGROUND:
            return [answer(definition, failure=f"{MAX_BACKGROUND} hooks run in the background already")]
        task = asyncio.ensure_future(self._timed(definition, call, payload))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return []

    async def _timed(self, definition: HookDefinition, call: HookCall, payload: bytes) -> HookAnswer:
        async with self._room:
            began, clock = time.time_ns() // 1000, time.monotonic()
            try:
                async with asyncio.timeout(definition.timeout + 5):
                    said = await self._run(definition, call, payload)
            except TimeoutError:
                said = answer(definition, failure=f"did not end within {definition.timeout:g} s")
            took = int((time.monotonic() - clock) * 1000)
            return msgspec.structs.replace(said, started_at=began, duration_ms=took)

    async def _run(self, definition: HookDefinition, call: HookCall, payload: bytes) -> HookAnswer:
        if definition.kind == "http":
            return await run_http(definition, payload)
        if definition.kind == "python":
            return await run_python(definition, call.payload)
        if definition.kind == "prompt":
            return await run_prompt(definition, payload, self._ask_model)
        environment = self._environment | {"COUNTERFOIL_SESSION_ID": str(call.payload.get("session_id", ""))}
        if call.tool_call_id is not None:
            environment["COUNTERFOIL_TOOL_CALL_ID"] = call.tool_call_id
        return await run_command(definition, payload, cwd=self._cwd, environment=environment)

    async def close(self) -> None:
        """Give what runs in the background its time, then end it."""
        if self._background:
            _, late = await asyncio.wait(set(self._background), timeout=5)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
