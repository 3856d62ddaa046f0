"""One turn of the model: the request, the stream, the validation, and asking again where that can help."""

from __future__ import annotations

import random

from counterfoil.engine.accept import Rejection, validate
from counterfoil.engine.compact import compact
from counterfoil.engine.context import Context
from counterfoil.errors import CounterfoilError, ProviderError
from counterfoil.events import (
    CallDelta,
    Event,
    MessageDelta,
    Notice,
    ReasoningDelta,
    TextPart,
    TurnRejected,
    TurnStarted,
    UserPrompt,
)
from counterfoil.events.codec import clean_text
from counterfoil.ports import CallChunk, ModelRequest, ModelSettings, ModelTurn, ReasoningChunk, TextChunk

NUDGE = "Your last turn was empty. Go on with the task, or say in words that it is done."


class MalformedTurn(CounterfoilError):
    """The model kept answering with turns that can't be accepted."""

    code = "malformed_turn"


class _Tries:
    """What one turn has been tried for so far."""

    def __init__(self) -> None:
        self.failed = 0
        self.malformed = 0
        self.empty = 0
        self.compacted = False


async def ask_model(ctx: Context) -> ModelTurn:
    """The model's next turn, valid as a whole. Nothing of it is recorded yet.

    Raises `ProviderError` when the API's faults last, `MalformedTurn` when its turns can't be accepted.
    """
    tries = _Tries()
    while True:
        number, attempt = await _begin(ctx)
        try:
            turn = await _stream(ctx, number)
        except ProviderError as fault:
            await _after_fault(ctx, fault, tries)
            continue
        rejection = validate(turn, ctx.state.outstanding_pairings(), ctx.settings.max_calls_per_turn)
        if rejection is None or (rejection.code == "empty_turn" and tries.empty >= ctx.settings.empty_turn_nudges):
            return turn
        await _reject(ctx, rejection, turn, number, attempt, tries)


async def _begin(ctx: Context) -> tuple[int, int]:
    """Publish `turn.started`. A turn that was begun and never accepted keeps its number."""
    run = ctx.state.run
    assert run is not None
    again = run.turn_open
    number, attempt = (run.turn, run.attempt + 1) if again else (run.turn + 1, 1)
    meta = ctx.state.meta
    await ctx.publish(TurnStarted(turn=number, attempt=attempt, provider=meta.provider, model=meta.model))
    return number, attempt


async def _stream(ctx: Context, number: int) -> ModelTurn:
    request = ModelRequest(
        history=ctx.state.history,
        system=ctx.system_prompt(),
        tools=ctx.toolset.specs,
        settings=ModelSettings(
            model=ctx.state.meta.model, max_tokens=ctx.settings.max_tokens, effort=ctx.settings.effort
        ),
        memo=ctx.memo(),
    )
    turn: ModelTurn | None = None
    async for item in ctx.provider.stream(request):
        if isinstance(item, TextChunk):
            ctx.publisher.transient(MessageDelta(turn=number, text=clean_text(item.text)))
        elif isinstance(item, ReasoningChunk):
            ctx.publisher.transient(ReasoningDelta(turn=number, text=clean_text(item.text)))
        elif isinstance(item, CallChunk):
            ctx.publisher.transient(_call_delta(item, number))
        else:
            turn = item
    if turn is None:
        raise ProviderError("stream_cut", "the provider's stream ended without a turn", permanent=False)
    return turn


def _call_delta(chunk: CallChunk, number: int) -> Event:
    return CallDelta(
        turn=number,
        position=chunk.position,
        tool=clean_text(chunk.tool),
        arguments_text=clean_text(chunk.arguments_text),
    )


async def _after_fault(ctx: Context, fault: ProviderError, tries: _Tries) -> None:
    """Make ready for another try, or raise the fault."""
    if fault.kind == "context_length" and not tries.compacted:
        tries.compacted = True
        if await compact(ctx, trigger="context_length"):
            return
    tries.failed += 1
    wait = _wait(ctx, fault, tries.failed)
    if fault.permanent or tries.failed > ctx.settings.provider_retries or wait is None:
        raise fault
    text = f"{fault.message}; asked again in {wait:.1f} s ({tries.failed} of {ctx.settings.provider_retries})"
    await ctx.publish(Notice(severity="notable", code="provider_retry", text=text))
    await ctx.parts.clock.sleep(wait)


def _wait(ctx: Context, fault: ProviderError, failed: int) -> float | None:
    """Seconds until the next try: what the provider wishes, else exponential with chance. None: too long."""
    settings = ctx.settings
    if fault.retry_after is not None:
        return fault.retry_after if fault.retry_after <= settings.retry_after_cap else None
    ceiling = min(settings.retry_cap, settings.retry_base * 2.0 ** (failed - 1))
    return ceiling * random.uniform(0.5, 1.0)  # noqa: S311 - spreads clients in time, guards nothing


_HINTS: dict[str, str] = {"too_many_calls": "try another model"}


async def _reject(
    ctx: Context, rejection: Rejection, turn: ModelTurn, number: int, attempt: int, tries: _Tries
) -> None:
    rejected = TurnRejected(
        turn=number, attempt=attempt, code=rejection.code, reason=rejection.reason, usage=turn.usage
    )
    if rejection.code == "empty_turn":
        tries.empty += 1
        await ctx.publish(rejected, UserPrompt(parts=(TextPart(text=NUDGE),), source="harness"))
        return
    tries.malformed += 1
    await ctx.publish(rejected)
    if tries.malformed > ctx.settings.malformed_turn_retries:
        raise MalformedTurn(
            f"the model's turn was rejected {tries.malformed} times: {rejection.reason}",
            hint=_HINTS.get(rejection.code, "this server gives calls ids that can't be told apart; try another one"),
        )
