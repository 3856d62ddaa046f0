"""Every rpc of the contract as one small function from a request to a response. Both doors call these; none decides."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, get_args

import msgspec

from counterfoil import __version__
from counterfoil.api import mapping
from counterfoil.api.memo import Memo
from counterfoil.api.v1 import events_pb2 as events
from counterfoil.api.v1 import records_pb2 as records
from counterfoil.api.v1 import services_pb2 as pb
from counterfoil.config import model_name
from counterfoil.errors import UsageError
from counterfoil.events import Envelope, Limits, Mode, Scope, SessionStatus, Verdict
from counterfoil.identity import AskID, HookID, Offset, SessionID, ToolCallID
from counterfoil.ports import SessionSummary
from counterfoil.service.access import Caller
from counterfoil.service.application import Application
from counterfoil.service.beginning import new_session
from counterfoil.service.frames import AskEnded, CaughtUp, Frame, Gap, HeartBeat, InboxFrame, OpenAsk

Handler = Callable[[Application, Caller, Any], Awaitable[Any]]
StreamHandler = Callable[[Application, Caller, Any], AsyncIterator[Any]]


def _one_of(value: str, kind: Any, field: str) -> Any:
    """`value`, which must be one of the closed set `kind`. Raises `UsageError` that names the field."""
    if value not in get_args(kind):
        raise UsageError(f"{field}: {value!r} is not a choice", hint=f"one of {', '.join(get_args(kind))}")
    return value


def _session(summary: SessionSummary) -> pb.Session:
    message = pb.Session()
    mapping.fill(message, summary)
    return message


def _ask(found: OpenAsk) -> pb.OpenAsk:
    message = pb.OpenAsk(
        opened_at=found.opened_at,
        session_title=found.session_title,
        session_id=found.session_id,
        untrusted_preview=found.untrusted_preview,
    )
    mapping.fill(message.ask, found.ask)
    return message


def _records(kind: Any, value: msgspec.Struct) -> Any:
    message = kind()
    mapping.fill(message, value)
    return message


async def create(app: Application, caller: Caller, request: pb.CreateRequest) -> pb.CreateResponse:
    settings = app.local.settings
    mode = _one_of(request.mode or settings.permissions.mode, Mode, "mode")
    limits = mapping.read(request.limits, Limits) if request.HasField("limits") else settings.limits
    new = new_session(
        settings,
        caller.principal,
        workspace=request.workspace or str(app.workspace),
        provider=request.provider,
        model=request.model,
        mode=mode,
        limits=limits,
        title=request.title,
    )
    return pb.CreateResponse(session=_session(await app.create(caller, new)))


async def get(app: Application, caller: Caller, request: pb.GetRequest) -> pb.GetResponse:
    return pb.GetResponse(session=_session(await app.get(caller, SessionID(request.session_id))))


async def list_sessions(app: Application, caller: Caller, request: pb.ListRequest) -> pb.ListResponse:
    status = _one_of(request.status, SessionStatus, "status") if request.status else None
    page = await app.list_sessions(
        caller,
        page_size=request.page_size or 100,
        page_token=request.page_token,
        status=status,
        owner=request.owner,
        text=request.text,
    )
    return pb.ListResponse(sessions=map(_session, page.sessions), next_page_token=page.next_token)


async def rename(app: Application, caller: Caller, request: pb.RenameRequest) -> pb.RenameResponse:
    await app.rename(caller, SessionID(request.session_id), request.title)
    return pb.RenameResponse()


async def fork(app: Application, caller: Caller, request: pb.ForkRequest) -> pb.ForkResponse:
    at = Offset(request.at) if request.HasField("at") else None
    title = request.title if request.HasField("title") else None
    return pb.ForkResponse(session_id=await app.fork(caller, SessionID(request.session_id), at=at, title=title))


async def delete(app: Application, caller: Caller, request: pb.DeleteRequest) -> pb.DeleteResponse:
    await app.delete(caller, SessionID(request.session_id))
    return pb.DeleteResponse()


async def set_mode(app: Application, caller: Caller, request: pb.SetModeRequest) -> pb.SetModeResponse:
    await app.set_mode(caller, SessionID(request.session_id), _one_of(request.mode, Mode, "mode"))
    return pb.SetModeResponse()


async def set_model(app: Application, caller: Caller, request: pb.SetModelRequest) -> pb.SetModelResponse:
    await app.set_model(caller, SessionID(request.session_id), request.provider, request.model)
    return pb.SetModelResponse()


async def compact(app: Application, caller: Caller, request: pb.CompactRequest) -> pb.CompactResponse:
    return pb.CompactResponse(compacted=await app.compact(caller, SessionID(request.session_id)))


async def prompt(app: Application, caller: Caller, request: pb.PromptRequest) -> pb.PromptResponse:
    parts = tuple(mapping.read_part(part) for part in request.parts)
    return pb.PromptResponse(run_id=await app.prompt(caller, SessionID(request.session_id), parts))


async def resume(app: Application, caller: Caller, request: pb.ResumeRequest) -> pb.ResumeResponse:
    return pb.ResumeResponse(run_id=await app.resume(caller, SessionID(request.session_id)))


async def steer(app: Application, caller: Caller, request: pb.SteerRequest) -> pb.SteerResponse:
    if not request.text.strip():
        raise UsageError("text: is empty", hint="say what is to be done")
    await app.steer(caller, SessionID(request.session_id), request.text)
    return pb.SteerResponse()


async def cancel(app: Application, caller: Caller, request: pb.CancelRequest) -> pb.CancelResponse:
    await app.cancel(caller, SessionID(request.session_id))
    return pb.CancelResponse()


async def cancel_call(app: Application, caller: Caller, request: pb.CancelCallRequest) -> pb.CancelCallResponse:
    await app.cancel_call(caller, SessionID(request.session_id), ToolCallID(request.tool_call_id))
    return pb.CancelCallResponse()


async def get_ask(app: Application, caller: Caller, request: pb.GetAskRequest) -> pb.GetAskResponse:
    return pb.GetAskResponse(ask=_ask(await app.get_ask(caller, AskID(request.ask_id))))


async def list_asks(app: Application, caller: Caller, request: pb.ListAsksRequest) -> pb.ListAsksResponse:
    session = SessionID(request.session_id) if request.session_id else None
    return pb.ListAsksResponse(asks=map(_ask, await app.list_asks(caller, session)))


async def answer(app: Application, caller: Caller, request: pb.AnswerRequest) -> pb.AnswerResponse:
    receipt = await app.answer(
        caller,
        AskID(request.ask_id),
        _one_of(request.verdict, Verdict, "verdict"),
        scope=_one_of(request.scope or "once", Scope, "scope"),
        note=request.note,
        rule=request.rule,
        idempotency_key=request.idempotency_key,
    )
    return pb.AnswerResponse(receipt=_records(records.Receipt, receipt))


async def list_grants(app: Application, caller: Caller, request: pb.ListGrantsRequest) -> pb.ListGrantsResponse:
    found = await app.list_grants(caller, SessionID(request.session_id))
    return pb.ListGrantsResponse(grants=[pb.Grant(rule=g.rule, scope=g.scope, ask_id=g.ask_id) for g in found])


async def revoke_grant(app: Application, caller: Caller, request: pb.RevokeGrantRequest) -> pb.RevokeGrantResponse:
    await app.revoke_grant(caller, SessionID(request.session_id), request.rule)
    return pb.RevokeGrantResponse()


async def get_status(app: Application, caller: Caller, request: pb.GetStatusRequest) -> pb.GetStatusResponse:
    policies = [
        pb.ReviewPolicy(name=r.name, jobs=r.jobs, tools=r.tools, checker=r.checker, enforcement=r.enforcement)
        for r in await app.review_rules(caller)
    ]
    return pb.GetStatusResponse(policies=policies)


async def list_reviews(app: Application, caller: Caller, request: pb.ListReviewsRequest) -> pb.ListReviewsResponse:
    found = await app.list_reviews(caller, SessionID(request.session_id))
    return pb.ListReviewsResponse(reviews=[_records(records.HookRecord, record) for record in found])


async def get_detail(app: Application, caller: Caller, request: pb.GetDetailRequest) -> pb.GetDetailResponse:
    session, review = SessionID(request.session_id), HookID(request.review_id)
    detail = await app.review_detail(caller, session, review, request.revision)
    return pb.GetDetailResponse(
        session_id=session,
        review_id=review,
        revision=request.revision,
        untrusted_concern=detail.concern,
        untrusted_evidence=detail.evidence,
        untrusted_next_step=detail.next_step,
    )


async def acknowledge(app: Application, caller: Caller, request: pb.AcknowledgeRequest) -> pb.AcknowledgeResponse:
    await app.acknowledge(caller, SessionID(request.session_id), HookID(request.review_id), request.revision)
    return pb.AcknowledgeResponse()


async def get_transcript(
    app: Application, caller: Caller, request: pb.GetTranscriptRequest
) -> pb.GetTranscriptResponse:
    limit = request.page_size or 1_000
    if not 1 <= limit <= 1_000 or request.after_offset < 0:
        raise UsageError("page_size is 1 to 1000, after_offset 0 or more")
    found = await app.transcript(caller, SessionID(request.session_id), Offset(request.after_offset), limit)
    following = (found[-1].offset or 0) if len(found) == limit else 0
    return pb.GetTranscriptResponse(events=map(mapping.to_event, found), next_offset=following)


async def inspect_call(app: Application, caller: Caller, request: pb.InspectCallRequest) -> pb.InspectCallResponse:
    found = await app.inspect_call(caller, SessionID(request.session_id), ToolCallID(request.tool_call_id))
    return pb.InspectCallResponse(events=map(mapping.to_event, found))


async def verify_log(app: Application, caller: Caller, request: pb.VerifyLogRequest) -> pb.VerifyLogResponse:
    found = await app.verify_log(caller, SessionID(request.session_id))
    return pb.VerifyLogResponse(intact=found.intact, events=found.events, first_bad_offset=found.offset)


async def get_info(app: Application, caller: Caller, request: pb.GetInfoRequest) -> pb.GetInfoResponse:
    return pb.GetInfoResponse(
        version=__version__,
        principal_name=caller.principal.name,
        role=caller.role,
        capabilities=["watch", "watch_all", "reviews", "cancel_call"],
        workspace=str(app.workspace),
        provider=app.local.settings.model.provider,
        model=model_name(app.local.settings),
        mode=app.local.settings.permissions.mode,
    )


async def watch(app: Application, caller: Caller, request: pb.WatchRequest) -> AsyncIterator[pb.WatchResponse]:
    async with contextlib.aclosing(watch_many(app, caller, request)) as batches:
        async for batch in batches:
            for frame in batch:
                yield frame


async def watch_many(
    app: Application, caller: Caller, request: pb.WatchRequest
) -> AsyncGenerator[list[pb.WatchResponse], None]:
    """The frames of a watch, as many at once as are there."""
    if request.after_offset < 0:
        raise UsageError("after_offset: is negative")
    found = app.watch_many(caller, SessionID(request.session_id), Offset(request.after_offset))
    async with contextlib.aclosing(found) as batches:
        async for batch in batches:
            yield [frame_message(frame) for frame in batch]


def frame_message(frame: Frame) -> pb.WatchResponse:
    """One frame of a watch. The same event is the same message for all who watch: nobody may change it."""
    if isinstance(frame, Envelope):
        return _watched(frame)
    if isinstance(frame, CaughtUp):
        return pb.WatchResponse(caught_up=pb.CaughtUp(offset=frame.offset))
    if isinstance(frame, Gap):
        return pb.WatchResponse(gap=pb.Gap(last_offset=frame.last_offset))
    return pb.WatchResponse(heart_beat=pb.HeartBeat())


_watched: Memo[Envelope, pb.WatchResponse] = Memo(lambda e: pb.WatchResponse(event=mapping.to_event(e)))


async def export(app: Application, caller: Caller, request: pb.ExportRequest) -> AsyncIterator[pb.ExportResponse]:
    async for chunk in app.export(caller, SessionID(request.session_id)):
        yield pb.ExportResponse(chunk=chunk)


async def watch_all(
    app: Application, caller: Caller, request: pb.WatchAllRequest
) -> AsyncIterator[pb.WatchAllResponse]:
    async for frame in app.watch_all(caller):
        yield inbox_message(frame)


def inbox_message(frame: InboxFrame) -> pb.WatchAllResponse:
    """One frame of the inbox."""
    if isinstance(frame, OpenAsk):
        return pb.WatchAllResponse(opened=_ask(frame))
    if isinstance(frame, AskEnded):
        return pb.WatchAllResponse(ended=pb.AskEnded(ask_id=frame.ask_id, origin_session_id=frame.session_id))
    assert isinstance(frame, HeartBeat)
    return pb.WatchAllResponse(heart_beat=pb.HeartBeat())


HANDLERS: dict[str, Handler] = {
    "Sessions.Create": create,
    "Sessions.Get": get,
    "Sessions.List": list_sessions,
    "Sessions.Rename": rename,
    "Sessions.Fork": fork,
    "Sessions.Delete": delete,
    "Sessions.SetMode": set_mode,
    "Sessions.SetModel": set_model,
    "Sessions.Compact": compact,
    "Runs.Prompt": prompt,
    "Runs.Resume": resume,
    "Runs.Steer": steer,
    "Runs.Cancel": cancel,
    "Runs.CancelCall": cancel_call,
    "Approvals.ListAsks": list_asks,
    "Approvals.GetAsk": get_ask,
    "Approvals.Answer": answer,
    "Approvals.ListGrants": list_grants,
    "Approvals.RevokeGrant": revoke_grant,
    "Reviews.GetStatus": get_status,
    "Reviews.ListReviews": list_reviews,
    "Reviews.GetDetail": get_detail,
    "Reviews.Acknowledge": acknowledge,
    "Transcripts.GetTranscript": get_transcript,
    "Transcripts.InspectCall": inspect_call,
    "Transcripts.VerifyLog": verify_log,
    "Server.GetInfo": get_info,
}
"""Every rpc with one response, by service and name."""

STREAMS: dict[str, StreamHandler] = {"Events.Watch": watch, "Events.WatchAll": watch_all, "Sessions.Export": export}
"""Every rpc with a stream of responses."""

__all__ = ["HANDLERS", "STREAMS", "events", "frame_message", "inbox_message"]
