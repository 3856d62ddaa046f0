"""One typed error model: what each error of the product is over HTTP and gRPC."""

from __future__ import annotations

import msgspec

from counterfoil import errors
from counterfoil.api import mapping
from counterfoil.api.v1 import services_pb2 as pb

MAX_TEXT = 500
"""Characters of a message or a hint: an error travels in the metadata of gRPC, which is small."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """An error at a door: HTTP status, name of the gRPC status, and the detail that both carry."""

    http: int
    grpc: str
    detail: pb.ErrorDetail


_KINDS: tuple[tuple[type[errors.CounterfoilError], int, str], ...] = (
    (errors.SessionNotFound, 404, "NOT_FOUND"),
    (errors.AskNotFound, 404, "NOT_FOUND"),
    (errors.ReviewNotFound, 404, "NOT_FOUND"),
    (errors.Forbidden, 403, "PERMISSION_DENIED"),
    (errors.Unauthenticated, 401, "UNAUTHENTICATED"),
    (errors.TooMuch, 413, "RESOURCE_EXHAUSTED"),
    (errors.TooSlow, 408, "DEADLINE_EXCEEDED"),
    (errors.TooFast, 429, "RESOURCE_EXHAUSTED"),
    (errors.AskIsSettled, 409, "FAILED_PRECONDITION"),
    (errors.AskWithdrawn, 409, "FAILED_PRECONDITION"),
    (errors.StaleReview, 409, "FAILED_PRECONDITION"),
    (errors.SessionBusy, 409, "FAILED_PRECONDITION"),
    (errors.SessionHeld, 409, "FAILED_PRECONDITION"),
    (errors.NotResumable, 409, "FAILED_PRECONDITION"),
    (errors.UsageError, 400, "INVALID_ARGUMENT"),
    (errors.ConfigError, 400, "INVALID_ARGUMENT"),
    (errors.ProviderError, 502, "UNAVAILABLE"),
    (errors.StoreError, 503, "UNAVAILABLE"),
)
"""The first that fits holds. Anything else is 503: the service is shutting down."""


def fault_of(error: Exception) -> Fault:
    """What `error` is at a door. An error that isn't typed says nothing of itself: its text may be anybody's."""
    if isinstance(error, msgspec.ValidationError):
        return _fault(400, "INVALID_ARGUMENT", "invalid", str(error))
    if not isinstance(error, errors.CounterfoilError):
        return _fault(500, "INTERNAL", "internal", "the server failed", hint="its log says more")
    http, grpc = next(((h, g) for kind, h, g in _KINDS if isinstance(error, kind)), (503, "UNAVAILABLE"))
    detail = _fault(http, grpc, error.code, error.message, hint=error.hint)
    if isinstance(error, errors.AskIsSettled):
        mapping.fill(detail.detail.receipt, msgspec.structs.replace(error.receipt, note=error.receipt.note[:MAX_TEXT]))
    return detail


def _fault(http: int, grpc: str, code: str, message: str, *, hint: str = "") -> Fault:
    detail = pb.ErrorDetail(code=code, message=_cut(message), hint=_cut(hint))
    return Fault(http=http, grpc=grpc, detail=detail)


def _cut(text: str) -> str:
    """Bounded, and text that a message holds: it may repeat what a client sent."""
    shown = text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
    return shown.encode("utf-8", "replace").decode()
