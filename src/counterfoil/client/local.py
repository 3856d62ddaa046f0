"""The client in the process of its service: no wire in between, the same values and errors as over one."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from types import TracebackType
from typing import Self

from counterfoil import __version__
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
from counterfoil.config import model_name
from counterfoil.errors import UsageError
from counterfoil.events import (
    Envelope,
    HookRecord,
    Limits,
    Mode,
    Part,
    Principal,
    Receipt,
    Scope,
    SessionStatus,
    Verdict,
    text_parts,
)
from counterfoil.identity import START, AskID, Offset, ReviewID, SessionID, ToolCallID
from counterfoil.ports import SessionSummary
from counterfoil.service.access import Caller
from counterfoil.service.application import MAX_PAGE, Application
from counterfoil.service.beginning import new_session
from counterfoil.service.frames import Frame, Gap, InboxFrame, OpenAsk
from counterfoil.service.local import LocalService

CAPABILITIES = ("watch", "watch_all", "reviews", "cancel_call")


class LocalClient:
    """A `Client` for one caller over an application in this process. `owns`: closing it drains the application and
    closes its store, with `grace` seconds for runs that go on; those that wait for a person are parked.
    """

    def __init__(self, app: Application, caller: Caller, *, owns: bool = False, grace: float = 5.0) -> None:
        self._app = app
        self._caller = caller
        self._owns = owns
        self._grace = grace

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
        new = new_session(
            self._app.local.settings,
            self._caller.principal,
            workspace=workspace or str(self._app.workspace),
            provider=provider,
            model=model,
            mode=mode,
            title=title,
            limits=limits,
        )
        return await self._app.create(self._caller, new)

    async def get(self, session: SessionID) -> SessionSummary:
        return await self._app.get(self._caller, session)

    async def list_sessions(
        self,
        *,
        status: SessionStatus | None = None,
        owner: str = "",
        text: str = "",
        page_size: int = 100,
        page_token: str = "",
    ) -> SessionPage:
        page = await self._app.list_sessions(
            self._caller, status=status, owner=owner, text=text, page_size=page_size, page_token=page_token
        )
        return SessionPage(sessions=page.sessions, next_token=page.next_token)

    async def rename(self, session: SessionID, title: str) -> None:
        await self._app.rename(self._caller, session, title)

    async def fork(self, session: SessionID, *, at: Offset | None = None, title: str | None = None) -> SessionID:
        return await self._app.fork(self._caller, session, at=at, title=title)

    async def delete(self, session: SessionID) -> None:
        await self._app.delete(self._caller, session)

    async def set_mode(self, session: SessionID, mode: Mode) -> None:
        await self._app.set_mode(self._caller, session, mode)

    async def set_model(self, session: SessionID, provider: str, model: str) -> None:
        await self._app.set_model(self._caller, session, provider, model)

    async def compact(self, session: SessionID) -> bool:
        return await self._app.compact(self._caller, session)

    async def export(self, session: SessionID) -> AsyncGenerator[bytes, None]:
        async with contextlib.aclosing(self._app.export(self._caller, session)) as chunks:
            async for chunk in chunks:
                yield chunk

    # ---- runs ---------------------------------------------------------------------------------------------------

    async def prompt(self, session: SessionID, parts: str | tuple[Part, ...]) -> Started:
        given = text_parts(parts) if isinstance(parts, str) else parts
        return Started(session_id=session, run_id=await self._app.prompt(self._caller, session, given))

    async def resume(self, session: SessionID) -> Started:
        return Started(session_id=session, run_id=await self._app.resume(self._caller, session))

    async def steer(self, session: SessionID, text: str) -> None:
        if not text.strip():
            raise UsageError("text: is empty", hint="say what is to be done")
        await self._app.steer(self._caller, session, text)

    async def cancel(self, session: SessionID) -> None:
        await self._app.cancel(self._caller, session)

    async def cancel_call(self, session: SessionID, call: ToolCallID) -> None:
        await self._app.cancel_call(self._caller, session, call)

    # ---- events -------------------------------------------------------------------------------------------------

    async def watch(self, session: SessionID, after: Offset = START) -> AsyncGenerator[Frame, None]:
        if after < START:
            raise UsageError("after_offset: is negative")
        gap = True
        while gap:
            gap = False
            async with contextlib.aclosing(self._app.watch(self._caller, session, after)) as frames:
                async for frame in frames:
                    if isinstance(frame, Envelope):
                        after = after if frame.offset is None else frame.offset
                    elif isinstance(frame, Gap):
                        gap = True
                    yield frame

    async def watch_all(self) -> AsyncGenerator[InboxFrame, None]:
        async with contextlib.aclosing(self._app.watch_all(self._caller)) as frames:
            async for frame in frames:
                yield frame

    # ---- approvals ----------------------------------------------------------------------------------------------

    async def list_asks(self, session: SessionID | None = None) -> tuple[OpenAsk, ...]:
        return tuple(await self._app.list_asks(self._caller, session))

    async def get_ask(self, ask: AskID) -> OpenAsk:
        return await self._app.get_ask(self._caller, ask)

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
        return await self._app.answer(
            self._caller, ask, verdict, scope=scope, note=note, rule=rule, idempotency_key=idempotency_key
        )

    async def list_grants(self, session: SessionID) -> tuple[LearnedRule, ...]:
        found = await self._app.list_grants(self._caller, session)
        return tuple(LearnedRule(rule=g.rule, scope=g.scope, ask_id=g.ask_id) for g in found)

    async def revoke_grant(self, session: SessionID, rule: str) -> None:
        await self._app.revoke_grant(self._caller, session, rule)

    # ---- reviews ------------------------------------------------------------------------------------------------

    async def get_status(self) -> tuple[ReviewPolicy, ...]:
        return tuple(
            ReviewPolicy(name=r.name, jobs=r.jobs, tools=r.tools, checker=r.checker, enforcement=r.enforcement)
            for r in await self._app.review_rules(self._caller)
        )

    async def list_reviews(self, session: SessionID) -> tuple[HookRecord, ...]:
        return tuple(await self._app.list_reviews(self._caller, session))

    async def get_detail(self, session: SessionID, review: ReviewID, revision: int) -> ReviewText:
        detail = await self._app.review_detail(self._caller, session, review, revision)
        return ReviewText(
            session_id=session,
            review_id=review,
            revision=revision,
            untrusted_concern=detail.concern,
            untrusted_evidence=detail.evidence,
            untrusted_next_step=detail.next_step,
        )

    async def acknowledge(self, session: SessionID, review: ReviewID, revision: int) -> None:
        await self._app.acknowledge(self._caller, session, review, revision)

    # ---- transcripts, the service itself ------------------------------------------------------------------------

    async def get_transcript(
        self, session: SessionID, after: Offset = START, *, page_size: int = 1000
    ) -> TranscriptPage:
        if not 1 <= page_size <= MAX_PAGE or after < START:
            raise UsageError("page_size is 1 to 1000, after_offset 0 or more")
        found = tuple(await self._app.transcript(self._caller, session, after, page_size))
        return TranscriptPage(events=found, next_offset=found[-1].offset if len(found) == page_size else None)

    async def inspect_call(self, session: SessionID, call: ToolCallID) -> tuple[Envelope, ...]:
        return tuple(await self._app.inspect_call(self._caller, session, call))

    async def verify_log(self, session: SessionID) -> LogCheck:
        found = await self._app.verify_log(self._caller, session)
        first_bad = None if found.offset is None else Offset(found.offset)
        return LogCheck(session_id=session, intact=found.intact, events=found.events, first_bad_offset=first_bad)

    async def get_info(self) -> Info:
        return Info(
            version=__version__,
            principal_name=self._caller.principal.name,
            role=self._caller.role,
            capabilities=CAPABILITIES,
            workspace=str(self._app.workspace),
            provider=self._app.local.settings.model.provider,
            model=model_name(self._app.local.settings),
            mode=self._app.local.settings.permissions.mode,
        )

    async def close(self) -> None:
        if self._owns:
            self._owns = False
            await self._app.close(self._grace)
            await self._app.local.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def embedded(service: LocalService, workspace: Path, principal: Principal, *, grace: float = 5.0) -> LocalClient:
    """The client of a service that lives as long as it: closing the client drains and closes the service."""
    return LocalClient(Application(service, workspace), Caller(principal=principal), owns=True, grace=grace)
