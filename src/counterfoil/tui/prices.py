"""What tokens cost."""

from __future__ import annotations

from counterfoil.events import Usage


def cost(model: str, usage: Usage) -> float | None:
    """Dollars, by the maintained table of prices; None where the table doesn't know the model."""
    from genai_prices import Usage as Priced
    from genai_prices import calc_price

    counted = Priced(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        return float(calc_price(counted, model).total_price)
    except LookupError:
        return None
