"""Buckets: never more than the burst at once, never more than the rate over time, bounded however many come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.api.rates import MOST, Buckets


@given(st.lists(st.floats(0, 5), min_size=1, max_size=200), st.floats(0.1, 10), st.integers(1, 20))
def test_never_more_than_burst_and_rate(pauses: list[float], rate: float, burst: int) -> None:
    buckets, now, taken = Buckets(rate, burst), 0.0, 0
    for pause in pauses:
        now += pause
        wait = buckets.take("a", now)
        taken += not wait
        assert taken <= burst + rate * now + 1e-6
        if wait:
            assert buckets.wait("a", now + wait + 1e-6) == pytest.approx(0, abs=1e-6)
        assert not Buckets(rate, burst).take("b", now)


def test_no_rate_is_no_limit_and_many_keys_are_bounded() -> None:
    assert not any(Buckets(0, 1).take("a", 0) for _ in range(1000))
    buckets = Buckets(1, 1)
    for number in range(2 * MOST):
        buckets.take(str(number), 0)
    assert len(buckets._left) == MOST
