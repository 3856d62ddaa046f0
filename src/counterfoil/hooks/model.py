"""The model behind prompt hooks: asked once for each firing, without tools and without the conversation."""

from __future__ import annotations

import logging
from collections.abc import Callable

from counterfoil.errors import ProviderError
from counterfoil.events import TextPart
from counterfoil.hooks.others import AskModel
from counterfoil.identity import Offset
from counterfoil.ports import ModelRequest, ModelSettings, ModelTurn, Provider
from counterfoil.state import EncodedHistory, History, PromptItem

SYSTEM = "You judge one event of an agent's session. You answer with the JSON object that you are asked for."
log = logging.getLogger("counterfoil.hooks")

ProviderOf = Callable[[str], tuple[Provider, ModelSettings]]
"""The provider and the settings for what a hook names as its `model`; empty: the session's own."""


def model_asker(provider_of: ProviderOf) -> AskModel:
    """Asks once. What it cost counts in no run: it is logged.

    Raises `CounterfoilError` where the model can't be had or gives no answer.
    """

    async def ask(question: str, model: str) -> str:
        provider, settings = provider_of(model)
        prompt = PromptItem(offset=Offset(1), parts=(TextPart(text=question),), source="harness")
        request = ModelRequest(
            history=History(items=[prompt]), system=SYSTEM, tools=(), settings=settings, memo=EncodedHistory()
        )
        found: ModelTurn | None = None
        try:
            async for item in provider.stream(request):
                if isinstance(item, ModelTurn):
                    found = item
        finally:
            await provider.close()
        if found is None:
            raise ProviderError("stream_cut", "the provider's stream ended without an answer", permanent=False)
        used = found.usage
        log.info("a prompt hook asked %s: %s tokens in, %s out", settings.model, used.input_tokens, used.output_tokens)
        return found.text

    return ask


__all__ = ["ProviderOf", "model_asker"]
