"""What is told of requests: counts and times for `/metrics`, one line in the log, and every refused attempt."""

from __future__ import annotations

import logging
import time
from types import TracebackType
from typing import Any, Literal, Self

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from counterfoil.api.faults import fault_of
from counterfoil.service.access import Caller
from counterfoil.service.application import Application

requests_log = logging.getLogger("counterfoil.requests")
audit_log = logging.getLogger("counterfoil.audit")
REFUSED = frozenset({"unauthenticated", "forbidden", "rate_limited"})
"""Codes of errors that refuse somebody: each such attempt is a line of the audit log."""
IDS = ("session_id", "ask_id", "tool_call_id", "review_id")
MAX_ID = 100


class Observer:
    """Counts and times the requests of one server, by door, rpc and code."""

    def __init__(self, app: Application) -> None:
        self.registry = CollectorRegistry()
        known, labels = self.registry, ("door", "rpc")
        self.requests = Counter("counterfoil_requests", "Requests that ended.", (*labels, "code"), registry=known)
        self.seconds = Histogram(
            "counterfoil_request_seconds", "How long a request with one response took.", labels, registry=known
        )
        self.streams = Gauge("counterfoil_streams", "Streams that are open.", labels, registry=known)
        self.refused = Counter("counterfoil_refused", "Attempts that were refused.", ("door", "code"), registry=known)
        sessions = Gauge("counterfoil_open_sessions", "Sessions that are open in this process.", registry=known)
        sessions.set_function(lambda: app.drivers.count)
        runs = Gauge("counterfoil_runs", "Runs that this process drives.", registry=known)
        runs.set_function(lambda: app.drivers.running_count)

    def request(self, door: str, rpc: str, peer: str) -> Request:
        """Observe one request, from here to the end of the block."""
        return Request(self, door, rpc, peer)

    def text(self) -> bytes:
        """What `/metrics` says, in the text format of Prometheus."""
        return generate_latest(self.registry)


class Request:
    """One request: a context manager that sees its end. What the door learns of it meanwhile is set on it."""

    def __init__(self, observer: Observer, door: str, rpc: str, peer: str) -> None:
        self._observer = observer
        self._door, self._rpc, self._peer = door, rpc, peer
        self._began = time.perf_counter()
        self._ids: dict[str, str] = {}
        self._streams = False
        self.caller: Caller | None = None

    def of(self, message: Any) -> None:
        """Take note of the ids that the request names."""
        for name in IDS:
            if value := getattr(message, name, ""):
                self._ids[name] = str(value)[:MAX_ID]

    def streams(self) -> None:
        """The request is answered by a stream."""
        self._streams = True
        self._observer.streams.labels(self._door, self._rpc).inc()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self.end(error if isinstance(error, Exception) else None)
        return False

    def end(self, error: Exception | None = None) -> None:
        """The request is over."""
        seen, took = self._observer, time.perf_counter() - self._began
        code = "ok" if error is None else fault_of(error).detail.code
        seen.requests.labels(self._door, self._rpc, code).inc()
        if self._streams:
            seen.streams.labels(self._door, self._rpc).dec()
        else:
            seen.seconds.labels(self._door, self._rpc).observe(took)
        who = {} if self.caller is None else {"principal": self.caller.principal.name, "role": self.caller.role}
        told = {"door": self._door, "rpc": self._rpc, "code": code, "peer": self._peer, **who, **self._ids}
        if code in REFUSED:
            seen.refused.labels(self._door, code).inc()
            audit_log.warning("refused", extra=told)
        requests_log.info("request", extra=told | {"ms": round(took * 1000, 1)})
