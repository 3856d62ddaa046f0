"""Traces: the spans of every session that this process drives, to whoever collects them (extra `otel`)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from counterfoil import __version__
from counterfoil.engine import Session, WatchGap
from counterfoil.errors import UsageError
from counterfoil.service.spans import Span, Spans

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger("counterfoil.service")


class Sink(Protocol):
    """Where spans go."""

    def send(self, span: Span) -> None:
        """Take one span, and don't block."""
        ...

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        ...


class Tracer:
    """Follows each session that is opened here until it is closed."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._following: set[asyncio.Task[None]] = set()

    def follow(self, session: Session) -> None:
        """Send the spans of a session from now on."""
        task = asyncio.ensure_future(self._follow(session))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _follow(self, session: Session) -> None:
        spans = Spans(session.id)
        while True:
            try:
                async with session.watch() as stream:
                    async for envelope in stream:
                        for span in spans.feed(envelope):
                            self._sink.send(span)
                return
            except WatchGap:
                log.warning("spans of session %s are missing: its events came too fast", session.id)

    async def close(self) -> None:
        """Wait until what was published is sent."""
        if self._following:
            await asyncio.wait(set(self._following), timeout=5)
        await asyncio.to_thread(self._sink.close)


class OpenTelemetry:
    """A `Sink` that hands spans to an exporter of the OpenTelemetry SDK, in batches."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        """`exporter`: by default OTLP over HTTP, to where the `OTEL_EXPORTER_OTLP_*` variables say.

        Raises `UsageError` where the extra isn't installed.
        """
        try:
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope

            if exporter is None:
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

                exporter = OTLPSpanExporter()
        except ImportError as fault:
            raise UsageError(f"{fault.name} isn't installed", hint="pip install 'counterfoil[otel]'") from fault
        self._resource = Resource.create({"service.name": "counterfoil", "service.version": __version__})
        self._scope = InstrumentationScope("counterfoil", __version__)
        self._processor = BatchSpanProcessor(exporter)

    def send(self, span: Span) -> None:
        """See `Sink`."""
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def context(of: int) -> SpanContext:
            return SpanContext(span.trace, of, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

        made = ReadableSpan(
            name=span.name,
            context=context(span.span),
            parent=None if span.parent is None else context(span.parent),
            resource=self._resource,
            attributes=span.attributes,
            kind=SpanKind.CLIENT if span.client else SpanKind.INTERNAL,
            instrumentation_scope=self._scope,
            status=Status(StatusCode.ERROR, span.failed) if span.failed else Status(StatusCode.UNSET),
            start_time=span.start * 1000,
            end_time=span.end * 1000,
        )
        self._processor.on_end(made)

    def close(self) -> None:
        """See `Sink`."""
        self._processor.force_flush(3000)
        self._processor.shutdown()  # type: ignore[no-untyped-call]
