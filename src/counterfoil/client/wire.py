"""The client of a server elsewhere: values to messages and back, whatever wire carries them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from google.protobuf.message import Message

from counterfoil.api import mapping
from counterfoil.api.v1 import services_pb2 as pb
from counterfoil.client.transport import Transport
from counterfoil.client.values import (
    Info,
    LearnedRule,
    LogCheck,
    ReviewPolicy,
    ReviewText,
    SessionPage,
    Started,
    TranscriptPage,
)
from counterfoil.errors import CodecError, UsageError
from counterfoil.events import (
    Ask,
    Envelope,
    HookRecord,
    Limits,
    Mode,
    Part,
    Receipt,
    Scope,
    SessionStatus,
    Verdict,
    text_parts,
)
from counterfoil.identity import START, AskID, Offset, ReviewID, RunID, SessionID, ToolCallID
from counterfoil.ports import SessionSummary
from counterfoil.service.frames import AskEnded, CaughtUp, Frame, Gap, HeartBeat, InboxFrame, OpenAsk

S = TypeVar("S", bound=msgspec.Struct)
M = TypeVar("M", bound=Message)
MAX_PAGE = 1_000
MAX_ID = 200


class WireClient:
    """A `Client` over a transport. Who speaks is whom the server takes the transport's token for."""

    def __init__(self, wire: Transport) -> None:
        self._wire = wire

    # ---- sessions -----------------------------------------------------------------------------------------------

    async def create(
        self,
        *,
        workspace: str = "",
        provider: str = "",
        model: str = "",
        mode: Mode | None = None,
        title: str = "",
        limits: Limits | None = None,
    ) -> SessionSummary:
        request = _made(
            pb.CreateRequest, workspace=workspace, provider=provider, model=model, mode=mode or "", title=title
        )
        if limits is not None:
            request.limits.SetInParent()
            mapping.fill(request.limits, limits)
        return _read((await self._wire.call("Sessions.Create", request)).session, SessionSummary)

    async def get(self, session: SessionID) -> SessionSummary:
        response = await self._wire.call("Sessions.Get", _made(pb.GetRequest, session_id=session))
        return _read(response.session, SessionSummary)

    async def list_sessions(
        self,
        *,
        status: SessionStatus | None = None,
        owner: str = "",
        text: str = "",
        page_size: int = 100,
        page_token: str = "",
    ) -> SessionPage:
        _check_size(page_size)
        request = _made(
            pb.ListRequest, page_size=page_size, page_token=page_token, status=status or "", text=text, owner=owner
        )
        page = await self._wire.call("Sessions.List", request)
        found = tuple(_read(message, SessionSummary) for message in page.sessions)
        return SessionPage(sessions=found, next_token=page.next_page_token)

    async def rename(self, session: SessionID, title: str) -> None:
        await self._wire.call("Sessions.Rename", _made(pb.RenameRequest, session_id=session, title=title))

    async def fork(self, session: SessionID, *, at: Offset | None = None, title: str | None = None) -> SessionID:
        request = _made(pb.ForkRequest, session_id=session, at=at, title=title)
        return SessionID((await self._wire.call("Sessions.Fork", request)).session_id)

    async def delete(self, session: SessionID) -> None:
        await self._wire.call("Sessions.Delete", _made(pb.DeleteRequest, session_id=session))

    async def set_mode(self, session: SessionID, mode: Mode) -> None:
        await self._wire.call("Sessions.SetMode", _made(pb.SetModeRequest, session_id=session, mode=mode))

    async def set_model(self, session: SessionID, provider: str, model: str) -> None:
        request = _made(pb.SetModelRequest, session_id=session, provider=provider, model=model)
        await self._wire.call("Sessions.SetModel", request)

    async def compact(self, session: SessionID) -> bool:
        response = await self._wire.call("Sessions.Compact", _made(pb.CompactRequest, session_id=session))
        return bool(response.compacted)

    async def export(self, session: SessionID) -> AsyncGenerator[bytes, None]:
        chunks = self._wire.stream("Sessions.Export", _made(pb.ExportRequest, session_id=session))
        async with contextlib.aclosing(chunks):
            async for message in chunks:
                yield message.chunk

    # ---- runs ---------------------------------------------------------------------------------------------------

    async def prompt(self, session: SessionID, parts: str | tuple[Part, ...]) -> Started:
        request = _made(pb.PromptRequest, session_id=session)
        try:
            for part in text_parts(parts) if isinstance(parts, str) else parts:
                mapping.fill_part(request.parts.add(), part)
        except UnicodeEncodeError as fault:
            raise UsageError("prompt: text that isn't valid Unicode can't be sent") from fault
        response = await self._wire.call("Runs.Prompt", request)
        return Started(session_id=session, run_id=RunID(response.run_id))

    async def resume(self, session: SessionID) -> Started:
        response = await self._wire.call("Runs.Resume", _made(pb.ResumeRequest, session_id=session))
        return Started(session_id=session, run_id=RunID(response.run_id))

    async def steer(self, session: SessionID, text: str) -> None:
        await self._wire.call("Runs.Steer", _made(pb.SteerRequest, session_id=session, text=text))

    async def cancel(self, session: SessionID) -> None:
        await self._wire.call("Runs.Cancel", _made(pb.CancelRequest, session_id=session))

    async def cancel_call(self, session: SessionID, call: ToolCallID) -> None:
        await self._wire.call("Runs.CancelCall", _made(pb.CancelCallRequest, session_id=session, tool_call_id=call))

    # ---- events -------------------------------------------------------------------------------------------------

    async def watch(self, session: SessionID, after: Offset = START) -> AsyncGenerator[Frame, None]:
        if after < START:
            raise UsageError("after_offset: is negative")
        gap = True
        while gap:
            gap = False
            request = _made(pb.WatchRequest, session_id=session, after_offset=after)
            async with contextlib.aclosing(self._wire.stream("Events.Watch", request)) as messages:
                async for message in messages:
                    frame = _frame(message)
                    if isinstance(frame, Envelope):
                        after = after if frame.offset is None else frame.offset
                    gap = gap or isinstance(frame, Gap)
                    yield frame

    async def watch_all(self) -> AsyncGenerator[InboxFrame, None]:
        async with contextlib.aclosing(self._wire.stream("Events.WatchAll", pb.WatchAllRequest())) as messages:
            async for message in messages:
                yield _inbox(message)

    # ---- approvals ----------------------------------------------------------------------------------------------

    async def list_asks(self, session: SessionID | None = None) -> tuple[OpenAsk, ...]:
        response = await self._wire.call("Approvals.ListAsks", _made(pb.ListAsksRequest, session_id=session or ""))
        return tuple(_open_ask(message) for message in response.asks)

    async def get_ask(self, ask: AskID) -> OpenAsk:
        return _open_ask((await self._wire.call("Approvals.GetAsk", _made(pb.GetAskRequest, ask_id=ask))).ask)

    async def answer(
        self,
        ask: AskID,
        verdict: Verdict,
        *,
        scope: Scope = "once",
        note: str = "",
        rule: str = "",
        idempotency_key: str = "",
    ) -> Receipt:
        request = _made(
            pb.AnswerRequest,
            ask_id=ask,
            verdict=verdict,
            scope=scope,
            note=note,
            rule=rule,
            idempotency_key=idempotency_key,
        )
        return _read((await self._wire.call("Approvals.Answer", request)).receipt, Receipt)

    async def list_grants(self, session: SessionID) -> tuple[LearnedRule, ...]:
        response = await self._wire.call("Approvals.ListGrants", _made(pb.ListGrantsRequest, session_id=session))
        return tuple(_read(message, LearnedRule) for message in response.grants)

    async def revoke_grant(self, session: SessionID, rule: str) -> None:
        await self._wire.call("Approvals.RevokeGrant", _made(pb.RevokeGrantRequest, session_id=session, rule=rule))

    # ---- reviews ------------------------------------------------------------------------------------------------

    async def get_status(self) -> tuple[ReviewPolicy, ...]:
        response = await self._wire.call("Reviews.GetStatus", pb.GetStatusRequest())
        return tuple(_read(message, ReviewPolicy) for message in response.policies)

    async def list_reviews(self, session: SessionID) -> tuple[HookRecord, ...]:
        response = await self._wire.call("Reviews.ListReviews", _made(pb.ListReviewsRequest, session_id=session))
        return tuple(_read(message, HookRecord) for message in response.reviews)

    async def get_detail(self, session: SessionID, review: ReviewID, revision: int) -> ReviewText:
        request = _made(pb.GetDetailRequest, session_id=session, review_id=review, revision=revision)
        return _read(await self._wire.call("Reviews.GetDetail", request), ReviewText)

    async def acknowledge(self, session: SessionID, review: ReviewID, revision: int) -> None:
        request = _made(pb.AcknowledgeRequest, session_id=session, review_id=review, revision=revision)
        await self._wire.call("Reviews.Acknowledge", request)

    # ---- transcripts, the service itself ------------------------------------------------------------------------

    async def get_transcript(
        self, session: SessionID, after: Offset = START, *, page_size: int = 1000
    ) -> TranscriptPage:
        _check_size(page_size)
        request = _made(pb.GetTranscriptRequest, session_id=session, after_offset=after, page_size=page_size)
        page = await self._wire.call("Transcripts.GetTranscript", request)
        following = Offset(page.next_offset) if page.next_offset else None
        return TranscriptPage(events=tuple(_event(message) for message in page.events), next_offset=following)

    async def inspect_call(self, session: SessionID, call: ToolCallID) -> tuple[Envelope, ...]:
        request = _made(pb.InspectCallRequest, session_id=session, tool_call_id=call)
        return tuple(_event(message) for message in (await self._wire.call("Transcripts.InspectCall", request)).events)

    async def verify_log(self, session: SessionID) -> LogCheck:
        found = await self._wire.call("Transcripts.VerifyLog", _made(pb.VerifyLogRequest, session_id=session))
        first_bad = Offset(found.first_bad_offset) if found.HasField("first_bad_offset") else None
        return LogCheck(session_id=session, intact=found.intact, events=found.events, first_bad_offset=first_bad)

    async def get_info(self) -> Info:
        return _read(await self._wire.call("Server.GetInfo", pb.GetInfoRequest()), Info)

    async def close(self) -> None:
        await self._wire.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _read(message: Any, kind: type[S]) -> S:
    try:
        return mapping.read(message, kind)
    except msgspec.ValidationError as fault:
        raise CodecError(f"the server's answer can't be read: {fault}") from fault


def _event(message: Any) -> Envelope:
    try:
        return mapping.from_event(message)
    except msgspec.ValidationError as fault:
        raise CodecError(f"an event of the server can't be read: {fault}") from fault


def _frame(message: Any) -> Frame:
    case = message.WhichOneof("frame")
    if case == "event":
        return _event(message.event)
    if case == "caught_up":
        return CaughtUp(offset=Offset(message.caught_up.offset))
    if case == "gap":
        return Gap(last_offset=Offset(message.gap.last_offset))
    return HeartBeat()


def _inbox(message: Any) -> InboxFrame:
    case = message.WhichOneof("frame")
    if case == "opened":
        return _open_ask(message.opened)
    if case == "ended":
        ended = message.ended
        return AskEnded(ask_id=AskID(ended.ask_id), session_id=SessionID(ended.origin_session_id))
    return HeartBeat()


def _open_ask(message: Any) -> OpenAsk:
    return OpenAsk(
        ask=_read(message.ask, Ask),
        opened_at=message.opened_at,
        session_id=SessionID(message.session_id),
        session_title=message.session_title,
        untrusted_preview=message.untrusted_preview,
    )


def _check_size(page_size: int) -> None:
    if not 1 <= page_size <= MAX_PAGE:
        raise UsageError("page_size is 1 to 1000, after_offset 0 or more")


def _made(kind: type[M], **fields: Any) -> M:
    """A request. Raises `UsageError` for text with lone surrogates, which no message holds.

    No id has any, or is longer than `MAX_ID`: one that has is sent so that it is still the id of nothing.
    """
    for name, value in fields.items():
        if isinstance(value, str) and name.endswith("_id"):
            fields[name] = value[:MAX_ID].encode("utf-8", "replace").decode()
        elif isinstance(value, str) and not _is_text(value):
            raise UsageError(f"{name}: text that isn't valid Unicode can't be sent")
    return kind(**fields)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
