"""A provider that follows a script: for demos and tests, without a network.

It is as strict as a real API: a history that a real one would refuse is refused here too, and what it gave out as
private replay data must come back as it was.

Turns are counted for each session (its request memo): the number of different turns that its requests have shown.
So a compaction, which takes turns out of the history, doesn't turn the script back. What can't be known is counted
by the likelier guess: a turn that was answered and then compacted away before any request showed it counts as
accepted. A compacted session that is opened by another process counts the turns in its history alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from counterfoil.errors import ProviderError
from counterfoil.events import Usage, text_of
from counterfoil.identity import derive
from counterfoil.ports import (
    CallChunk,
    ModelRequest,
    ModelTurn,
    ProposedCall,
    ReasoningChunk,
    StreamItem,
    TextChunk,
)
from counterfoil.providers.script import Script, ScriptError, ScriptTurn, filled, load_script, pieces
from counterfoil.state.history import EncodedHistory, History, PromptItem, SummaryItem, TurnItem

ORIGIN = "scripted@local"


class ScriptWire(msgspec.Struct, frozen=True):
    """The private replay data of one scripted turn: pairing ids in call order, and a seal over them."""

    ids: tuple[str, ...]
    seal: str


class _Progress:
    """How far one session has come."""

    def __init__(self, first_prompt: str) -> None:
        self.first_prompt = first_prompt
        self._seen: set[int] = set()
        self._unseen = 0
        self._summary = 0
        self._answered = False
        self._turn = -1
        self._attempt = 0

    def next(self, history: History) -> tuple[int, int]:
        """Turn and attempt that a request with this history asks for."""
        self.look(history)
        turn = len(self._seen) + self._unseen
        self._attempt = self._attempt + 1 if turn == self._turn else 0
        self._turn, self._answered = turn, False
        return turn, self._attempt

    def look(self, history: History) -> None:
        """Take note of the turns and the summary in `history`."""
        known = len(self._seen)
        self._seen.update(item.offset for item in history.items if isinstance(item, TurnItem))
        summary = max((item.offset for item in history.items if isinstance(item, SummaryItem)), default=0)
        if len(self._seen) > known:
            self._answered = False
        elif summary > self._summary and self._answered:
            self._unseen += 1
            self._answered = False
        self._summary = max(summary, self._summary)

    def answered(self) -> None:
        """The last request got a whole turn."""
        self._answered = True


class ScriptedProvider:
    """Answers from a script. `placeholders` are the values of `${NAME}` in its texts."""

    def __init__(
        self, script: Script | Path, name: str = "scripted", *, placeholders: Mapping[str, str] | None = None
    ) -> None:
        values = dict(placeholders or {})
        self._script = load_script(script, values) if isinstance(script, Path) else filled(script, values)
        self._name = name
        self._sessions: WeakKeyDictionary[EncodedHistory, _Progress] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """The configured name."""
        return self._name

    @property
    def origin(self) -> str:
        """Always `scripted@local`."""
        return ORIGIN

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Answer once from the script. Raises `ProviderError` where the script, or a strict API, would."""
        check_history(request.history)
        progress = self._progress(request)
        if not request.tools and self._script.aside is not None:
            progress.look(request.history)
            number, answer = 0, ScriptTurn(text=self._script.aside)
        else:
            number, attempt = progress.next(request.history)
            answer = self._script.turn(number, attempt, progress.first_prompt)
        await _delay(answer)
        if answer.error is not None:
            raise provider_error(answer.error)
        turn = _whole(self._script, answer, number, request.settings.model)
        for chunk in _chunks(answer, turn):
            yield chunk
        if answer.cut:
            raise ProviderError("stream_cut", "the stream ended in the middle of the turn", permanent=False)
        if request.tools or self._script.aside is None:
            progress.answered()
        yield turn

    async def close(self) -> None:
        """Nothing to give up."""

    def _progress(self, request: ModelRequest) -> _Progress:
        if request.memo not in self._sessions:
            self._sessions[request.memo] = _Progress(_first_prompt(request.history))
        return self._sessions[request.memo]


def check_history(history: History) -> None:
    """Refuse what a strict API would refuse. Raises `ProviderError` of kind `bad_request`."""
    if history.items and isinstance(history.items[0], TurnItem):
        raise _refused("the history begins with a turn of the model")
    for place, item in enumerate(history.items):
        if not isinstance(item, TurnItem):
            continue
        if [c.tool_call_id for c in item.calls] != [r.tool_call_id for r in item.results]:
            raise _refused(f"item {place}: the results aren't those of the calls, one each, in order")
        _check_replay(place, item)


def provider_error(error: ScriptError) -> ProviderError:
    """The error that the script asks for."""
    return ProviderError(error.kind, error.message, permanent=error.permanent, retry_after=error.retry_after)


def _check_replay(place: int, item: TurnItem) -> None:
    if item.replay is None or item.replay.origin != ORIGIN:
        return
    try:
        wire = msgspec.json.decode(item.replay.wire, type=ScriptWire)
    except msgspec.DecodeError as error:
        raise _refused(f"item {place}: the replay data came back changed") from error
    if wire.seal != _seal(wire.ids):
        raise _refused(f"item {place}: the replay data came back changed")
    sent = [call.replay.pairing_id if call.replay and call.replay.origin == ORIGIN else None for call in item.calls]
    if sent != list(wire.ids):
        raise _refused(f"item {place}: the pairing ids came back changed")


def _refused(message: str) -> ProviderError:
    return ProviderError("bad_request", message, permanent=True, hint="the harness built a history that no API takes")


def _seal(ids: tuple[str, ...]) -> str:
    return derive("counterfoil/scripted-wire/v1", *ids)


def _first_prompt(history: History) -> str:
    return next((text_of(item.parts) for item in history.items if isinstance(item, PromptItem)), "")


async def _delay(answer: ScriptTurn) -> None:
    if answer.raw is not None:
        raise ProviderError("script", "`raw` is for the model server", permanent=True, hint="use text and calls here")
    if answer.hang:
        await asyncio.Event().wait()
    if answer.wait:
        await asyncio.sleep(answer.wait)


def _whole(script: Script, answer: ScriptTurn, number: int, model: str) -> ModelTurn:
    """The turn that `answer` describes, as turn `number` of its session."""
    calls = []
    for position, call in enumerate(answer.calls):
        pairing = script.pairing_id(call, number, position)
        arguments, problem = _arguments(call.arguments)
        made = pairing or "made-" + derive("counterfoil/scripted-made/v1", str(number), str(position))
        calls.append(
            ProposedCall(pairing_id=made, made=not pairing, tool=call.tool, arguments=arguments, problem=problem)
        )
    ids = tuple(call.pairing_id for call in calls)
    usage = answer.usage or Usage(input_tokens=1, output_tokens=max(1, len(answer.text) // 4))
    return ModelTurn(
        text=answer.text,
        reasoning=answer.reasoning,
        calls=tuple(calls),
        wire=msgspec.Raw(msgspec.json.encode(ScriptWire(ids, _seal(ids)))),
        usage=usage if usage.requests else usage + Usage(requests=1),
        stop_reason=answer.stop_reason,
        model=model,
    )


def _arguments(given: dict[str, Any] | str) -> tuple[dict[str, Any] | None, str | None]:
    """Arguments as an object, or None and what is wrong with them. No text at all stands for no arguments."""
    if not isinstance(given, str):
        return given, None
    if not given.strip():
        return {}, None
    try:
        return msgspec.json.decode(given, type=dict[str, Any]), None
    except msgspec.DecodeError as error:
        return None, f"the arguments are not a JSON object: {error}"


def _chunks(answer: ScriptTurn, turn: ModelTurn) -> list[StreamItem]:
    """What is streamed before the whole turn; a stream that is cut holds half of each call's arguments."""
    items: list[StreamItem] = []
    if answer.reasoning:
        items.append(ReasoningChunk(text=answer.reasoning))
    items.extend(TextChunk(text=piece) for piece in pieces(answer.text, answer.chunks))
    for position, call in enumerate(answer.calls):
        given = call.arguments
        text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        items.append(CallChunk(position=position, tool=call.tool))
        items.append(CallChunk(position=position, arguments_text=text[: len(text) // 2] if answer.cut else text))
    return items


__all__ = ["ORIGIN", "Script", "ScriptTurn", "ScriptedProvider", "check_history", "load_script", "provider_error"]
