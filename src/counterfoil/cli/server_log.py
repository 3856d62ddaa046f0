"""What a server logs: each line with its ids, as text for a person or as JSON for a collector, on stderr."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

Format = Literal["text", "json"]


def set_up(form: Format, level: str = "info") -> None:
    """Log everything of the product from `level` on. Whatever else is on the root logger stays."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.processors.KeyValueRenderer(
            key_order=["timestamp", "level", "logger", "event"], drop_missing=True
        )
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    log = logging.getLogger("counterfoil")
    log.handlers = [handler]
    log.setLevel(level.upper())
