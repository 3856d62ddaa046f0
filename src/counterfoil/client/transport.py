"""What a wire client needs of a wire: one message for one message, and streams of them; errors as they are typed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

import msgspec
from google.protobuf import message_factory
from google.protobuf.message import Message

from counterfoil import errors
from counterfoil.api import mapping
from counterfoil.api.v1 import services_pb2 as pb
from counterfoil.events import Receipt


class Transport(Protocol):
    """A connection to one server, with the caller's token."""

    async def call(self, rpc: str, request: Message) -> Any:
        """The response of an rpc, by `Service.Method`. Raises the error that the server met, or `Unreachable`."""
        ...

    def stream(self, rpc: str, request: Message) -> AsyncGenerator[Any, None]:
        """The responses of a streaming rpc. Raises as `call`; ends where the server ends it in good order."""
        ...

    async def close(self) -> None:
        """Give the connection up."""
        ...


def response_type(rpc: str) -> type[Message]:
    """The message that an rpc answers with."""
    service, method = rpc.split(".")
    found = pb.DESCRIPTOR.services_by_name[service].methods_by_name[method]
    return message_factory.GetMessageClass(found.output_type)


def error_of(detail: pb.ErrorDetail) -> errors.CounterfoilError:
    """The typed error that a server told. One that this version doesn't know is a `CounterfoilError`."""
    if detail.code == errors.AskIsSettled.code and detail.HasField("receipt"):
        try:
            return errors.AskIsSettled(mapping.read(detail.receipt, Receipt))
        except msgspec.ValidationError:
            return errors.AnswerRefused(detail.message, hint=detail.hint)
    if detail.code == errors.ProviderError.code:
        return errors.ProviderError("unknown", detail.message, permanent=False, hint=detail.hint)
    kind = _KINDS.get(detail.code, errors.CounterfoilError)
    return kind(detail.message or "the server refused without a reason", hint=detail.hint)


def _kinds(of: type[errors.CounterfoilError]) -> dict[str, type[errors.CounterfoilError]]:
    found = {of.code: of} if of.__init__ is errors.CounterfoilError.__init__ else {}
    for kind in of.__subclasses__():
        if kind.__module__ == errors.__name__:
            found |= _kinds(kind)
    return found


_KINDS = _kinds(errors.CounterfoilError) | {"invalid": errors.UsageError}
