"""The checker over any configured model: isolated, without tools, one turn, one submission."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable

from counterfoil.errors import CounterfoilError, ProviderError
from counterfoil.events import TextPart, Usage
from counterfoil.identity import Offset
from counterfoil.policy.paths import Place
from counterfoil.ports import (
    Assessment,
    Checked,
    Evidence,
    ModelRequest,
    ModelSettings,
    ModelTurn,
    Provider,
    ReviewRule,
    ReviewSubject,
)
from counterfoil.reviews.evidence import read_evidence
from counterfoil.reviews.framing import framed
from counterfoil.reviews.rubric import instructions, submission_spec
from counterfoil.reviews.submission import assessed
from counterfoil.state import EncodedHistory, History, PromptItem

log = logging.getLogger("counterfoil.reviews")

MAX_TOKENS = 4_000
"""What a checker may write in its one turn, reasoning included."""


class Checker:
    """Reviews for one session. `open_provider(checker)` makes the provider of `provider/model` and names the model.

    `denied` says of a resolved path whether the session may not read it.
    """

    def __init__(
        self,
        rules: tuple[ReviewRule, ...],
        *,
        open_provider: Callable[[str], tuple[Provider, str]],
        place: Place,
        denied: Callable[[str], bool],
    ) -> None:
        self._rules = rules
        self._open = open_provider
        self._place = place
        self._denied = denied
        self._providers: dict[str, tuple[Provider, str]] = {}

    @property
    def rules(self) -> tuple[ReviewRule, ...]:
        return self._rules

    async def gather(self, subject: ReviewSubject) -> Evidence:
        return await asyncio.to_thread(read_evidence, subject, self._place, self._denied)

    async def check(self, subject: ReviewSubject, rule: ReviewRule, evidence: Evidence) -> Checked:
        nonce = secrets.token_hex(8)
        message = framed(subject, evidence, nonce, rule.max_input)
        usage: list[Usage] = []
        try:
            async with asyncio.timeout(rule.timeout):
                turn = await self._turn(rule, instructions(subject.job, rule, nonce), message.text, usage)
        except TimeoutError:
            return Checked(outage="timeout", usage=_sum(usage), incomplete=message.incomplete)
        except CounterfoilError as fault:
            log.warning("review %s: the checker %s failed: %s", subject.review_id, rule.checker, fault.code)
            return Checked(outage="provider_failure", usage=_sum(usage), incomplete=message.incomplete)
        said = assessed(turn)
        if isinstance(said, Assessment):
            return Checked(assessment=said, usage=_sum(usage), incomplete=message.incomplete)
        return Checked(outage=said, usage=_sum(usage), incomplete=message.incomplete)

    async def _turn(self, rule: ReviewRule, system: str, text: str, usage: list[Usage]) -> ModelTurn:
        """Ask; once more after a fault that may pass. Raises `CounterfoilError`."""
        provider, model = self._provider(rule.checker)
        for last in (False, True):
            prompt = PromptItem(offset=Offset(1), parts=(TextPart(text=text),))
            request = ModelRequest(
                history=History(items=[prompt]),
                system=system,
                tools=(submission_spec(),),
                settings=ModelSettings(model=model, max_tokens=MAX_TOKENS),
                memo=EncodedHistory(),
            )
            usage.append(Usage(requests=1))
            try:
                async for item in provider.stream(request):
                    if isinstance(item, ModelTurn):
                        usage[-1] = item.usage if item.usage.requests else item.usage + Usage(requests=1)
                        return item
            except ProviderError as fault:
                if last or fault.permanent:
                    raise
        raise ProviderError("stream_cut", "the checker's stream ended without a turn", permanent=False)

    def _provider(self, checker: str) -> tuple[Provider, str]:
        if checker not in self._providers:
            self._providers[checker] = self._open(checker)
        return self._providers[checker]

    async def close(self) -> None:
        for provider, _ in self._providers.values():
            await provider.close()
        self._providers.clear()


def _sum(usage: list[Usage]) -> Usage:
    total = Usage()
    for one in usage:
        total += one
    return total
