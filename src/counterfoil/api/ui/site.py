"""The routes under `/ui`. A cookie that only these routes get has the token; the API itself takes no cookies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from typing import Any, get_args
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from counterfoil.api.body import read_body
from counterfoil.api.door import Door
from counterfoil.api.faults import fault_of
from counterfoil.api.observing import Observer
from counterfoil.api.ui import pages
from counterfoil.errors import CounterfoilError, Unauthenticated, UsageError
from counterfoil.events import Envelope, HookRecord, Scope, Verdict
from counterfoil.identity import START, AskID, Offset, SessionID
from counterfoil.scrollback import Scrollback
from counterfoil.scrollback.page.words import line
from counterfoil.service.access import Caller, may
from counterfoil.service.application import Application
from counterfoil.service.frames import CaughtUp, Gap, HeartBeat, OpenAsk

COOKIE = "counterfoil_ui"
KEPT = 12 * 3600
"""Seconds for which a browser stays logged in."""
MAX_FORM = 64_000
PAGE = 1_000
FLOW = 0.2
"""Seconds between two looks at what streams."""
REMEMBERED = 1_000
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser sends `Origin: null` with a form
    "Cache-Control": "no-store",
}
Check = Callable[[Request], None]
Page = Callable[[Request, Caller], Awaitable[Response]]


def ui_routes(app: Application, door: Door, check: Check, observer: Observer) -> list[Route]:
    """The routes. `check` refuses a request by a strange `Host` or from a page of another origin."""
    site = _Pages(app, door, check, observer)
    return [
        Route("/ui", site.of(site.inbox), methods=["GET"]),
        Route("/ui/login", site.login, methods=["GET", "POST"]),
        Route("/ui/logout", site.logout, methods=["POST"]),
        Route("/ui/asks", site.of(site.asks), methods=["GET"]),
        Route("/ui/asks/{ask_id}/answer", site.of(site.answer), methods=["POST"]),
        Route("/ui/events", site.of(site.events), methods=["GET"]),
        Route("/ui/sessions", site.of(site.sessions), methods=["GET"]),
        Route("/ui/sessions/{session_id}", site.of(site.session), methods=["GET"]),
        Route("/ui/sessions/{session_id}/events", site.of(site.session_events), methods=["GET"]),
        Route("/ui/ui.js", _static("ui.js", "text/javascript"), methods=["GET"]),
        Route("/ui/ui.css", _static("ui.css", "text/css"), methods=["GET"]),
    ]


def _static(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    text = (files("counterfoil.api.ui") / name).read_text(encoding="utf-8")

    async def served(request: Request) -> Response:
        return Response(text, media_type=kind, headers=HEADERS)

    return served


class _Pages:
    def __init__(self, app: Application, door: Door, check: Check, observer: Observer) -> None:
        self._app = app
        self._observer = observer
        self._door = door
        self._check = check
        self._records: OrderedDict[AskID, list[HookRecord]] = OrderedDict()

    # ---- who ----------------------------------------------------------------------------------------------------

    def of(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        """The page, for whom the cookie has a token of; others are sent to the login. Errors are pages too."""

        async def endpoint(request: Request) -> Response:
            try:
                with self._observer.request("ui", page.__name__, _peer(request)) as seen:
                    self._check(request)
                    seen.caller = await self._caller(request)
                    response = await page(request, seen.caller)
            except Unauthenticated:
                if request.headers.get("x-fragment") or request.url.path.endswith("events"):
                    return Response("log in", status_code=401, headers=HEADERS)
                return RedirectResponse("/ui/login", status_code=303, headers=HEADERS)
            except CounterfoilError as error:
                return _refused(request, error)
            response.headers.update(HEADERS)
            return response

        return endpoint

    async def _caller(self, request: Request) -> Caller:
        if COOKIE not in request.cookies and not self._door.is_local:
            raise Unauthenticated("log in first")
        return await self._door.caller(f"Bearer {request.cookies.get(COOKIE, '')}", _peer(request))

    async def login(self, request: Request) -> Response:
        """Ask for a token; keep it in the browser where it is one."""
        try:
            self._check(request)
            if request.method == "GET":
                return HTMLResponse(pages.login(), headers=HEADERS)
            token = (await _form(request)).get("token", "").strip()
            with self._observer.request("ui", "login", _peer(request)) as seen:
                seen.caller = await self._door.caller(f"Bearer {token}", _peer(request))
        except Unauthenticated:
            return HTMLResponse(pages.login("that is no valid token"), status_code=401, headers=HEADERS)
        except CounterfoilError as error:
            return _refused(request, error)
        response = RedirectResponse("/ui", status_code=303, headers=HEADERS)
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, token, max_age=KEPT, path="/ui", secure=secure, httponly=True, samesite="strict")
        return response

    async def logout(self, request: Request) -> Response:
        """Have the browser forget the token."""
        try:
            self._check(request)
        except CounterfoilError as error:
            return _refused(request, error)
        response = RedirectResponse("/ui/login", status_code=303, headers=HEADERS)
        response.delete_cookie(COOKIE, path="/ui", httponly=True, samesite="strict")
        return response

    # ---- pages --------------------------------------------------------------------------------------------------

    async def inbox(self, request: Request, caller: Caller) -> Response:
        """All questions of all sessions."""
        shown = await self._shown(caller, await self._app.list_asks(caller))
        return HTMLResponse(pages.inbox(shown, who=_who(caller), leave=not self._door.is_local))

    async def asks(self, request: Request, caller: Caller) -> Response:
        """The questions alone, of all sessions or of one: what the script takes."""
        session = request.query_params.get("session")
        found = await self._app.list_asks(caller, SessionID(session) if session else None)
        return HTMLResponse("".join(await self._shown(caller, found)))

    async def _shown(self, caller: Caller, found: list[OpenAsk]) -> list[str]:
        return [await self._ask(caller, one) for one in found if not one.ask.deferred]

    async def _ask(self, caller: Caller, found: OpenAsk) -> str:
        may_answer = may(caller, "answer")
        ask = found.ask
        if ask.ask_id not in self._records:
            told = Scrollback(ask.origin_session_id)
            told.extend(await self._app.inspect_call(caller, ask.origin_session_id, ask.tool_call_id))
            self._records[ask.ask_id] = list(told.records)
            while len(self._records) > REMEMBERED:
                self._records.popitem(last=False)
        if ask.result_digest is not None and may_answer:
            with contextlib.suppress(CounterfoilError):  # it was answered meanwhile: the next look says so
                found = await self._app.get_ask(caller, ask.ask_id)
        return pages.ask(found, self._records[ask.ask_id], secrets.token_hex(16), may_answer=may_answer)

    async def answer(self, request: Request, caller: Caller) -> Response:
        """Settle one ask, by its id and nothing else."""
        given = await _form(request)
        word, _, scope = given.get("answer", "").partition(" ")
        if word not in get_args(Verdict) or (scope or "once") not in get_args(Scope):
            raise UsageError("answer: is not a choice")
        receipt = await self._app.answer(
            caller,
            AskID(request.path_params["ask_id"]),
            word,  # type: ignore[arg-type]
            scope=scope or "once",  # type: ignore[arg-type]
            note=given.get("note", "") if word in ("deny", "withhold") else "",
            idempotency_key=given.get("key", ""),
        )
        if request.headers.get("x-fragment"):
            return Response(f"{receipt.verdict}: recorded for {receipt.tool_call_id}", media_type="text/plain")
        return RedirectResponse("/ui", status_code=303)

    async def sessions(self, request: Request, caller: Caller) -> Response:
        """The caller's sessions, latest first."""
        found = await self._app.list_sessions(caller, page_token=request.query_params.get("page", ""))
        leave = not self._door.is_local
        return HTMLResponse(pages.sessions(found.sessions, found.next_token, who=_who(caller), leave=leave))

    async def session(self, request: Request, caller: Caller) -> Response:
        """One session's scrollback."""
        session = SessionID(request.path_params["session_id"])
        seen = await self._read(caller, session)
        asks = await self._shown(caller, await self._app.list_asks(caller, session))
        every = request.query_params.get("all") == "1"
        return HTMLResponse(pages.session(seen, asks, who=_who(caller), every=every))

    async def _read(self, caller: Caller, session: SessionID, through: Offset | None = None) -> Scrollback:
        """What the log says, up to and with `through`."""
        seen, after = Scrollback(session), START
        while envelopes := await self._app.transcript(caller, session, after, PAGE):
            seen.extend(e for e in envelopes if through is None or (e.offset or 0) <= through)
            after = envelopes[-1].offset or after
            if len(envelopes) < PAGE or (through is not None and after >= through):
                break
        return seen

    # ---- streams ------------------------------------------------------------------------------------------------

    async def events(self, request: Request, caller: Caller) -> Response:
        """Says that the list of questions changed: the script takes it anew then."""

        async def told() -> AsyncIterator[bytes]:
            yield b"retry: 1000\n\n"
            with contextlib.suppress(CounterfoilError):  # the stream ends; the browser comes again
                async for frame in self._app.watch_all(caller):
                    yield b": still here\n\n" if isinstance(frame, HeartBeat) else b"event: asks\ndata: {}\n\n"

        return _stream(told())

    async def session_events(self, request: Request, caller: Caller) -> Response:
        """What changes in one session after what the page has: entries by their place, head, what streams."""
        session = SessionID(request.path_params["session_id"])
        given = request.headers.get("last-event-id") or request.query_params.get("after", "0")
        if not given.isascii() or not given.isdigit() or len(given) > 18:
            raise UsageError("after: is not a number")
        after = Offset(int(given))
        seen = await self._read(caller, session, after)
        return _stream(self._told(caller, session, seen, after))

    async def _told(self, caller: Caller, session: SessionID, seen: Scrollback, after: Offset) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        loop, flowed, flowing = asyncio.get_running_loop(), 0.0, False
        with contextlib.suppress(CounterfoilError):  # the stream ends; the browser comes again
            async with contextlib.aclosing(self._app.watch(caller, session, after)) as frames:
                async for frame in frames:
                    if isinstance(frame, Gap):
                        return
                    if isinstance(frame, (HeartBeat, CaughtUp)):
                        yield b": still here\n\n"
                        continue
                    assert isinstance(frame, Envelope)
                    change = seen.apply(frame)
                    for place, html in pages.changed(seen, (*change.added, *change.changed, *change.removed)):
                        yield _event("entry", {"at": place, "html": html}, frame.offset)
                    if change.head:
                        yield _event("head", {"html": pages.head(seen)}, frame.offset)
                    if frame.offset is not None and type(frame.event).__name__.startswith("Ask"):
                        yield _event("asks", {}, frame.offset)
                    now = loop.time()
                    if (seen.live.text and now - flowed >= FLOW) or (flowing and not seen.live.text):
                        flowed, flowing = now, bool(seen.live.text)
                        yield _event("live", {"html": pages.live(seen)}, None)


def _event(name: str, data: dict[str, Any], offset: int | None) -> bytes:
    head = f"id: {offset}\n" if offset is not None else ""
    return f"{head}event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode("utf-8", "replace")


def _stream(frames: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(frames, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _peer(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _who(caller: Caller) -> str:
    return f"{caller.principal.name} ({caller.role})"


def _refused(request: Request, error: CounterfoilError) -> Response:
    fault = fault_of(error)
    hint = f" ({error.hint})" if error.hint else ""
    if request.headers.get("x-fragment"):
        return Response(f"{error.message}{hint}"[:1000], status_code=fault.http, headers=HEADERS)
    body = f'<h1>Not done</h1><p class="blocking">{line(error.message + hint)}</p><p><a href="/ui">Inbox</a></p>'
    return HTMLResponse(pages.page("Not done", body, script=False), status_code=fault.http, headers=HEADERS)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, the last of each name. Raises `UsageError`, `TooMuch`."""
    body = await read_body(request, MAX_FORM)
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise UsageError("a form is wanted", hint="use the page, or the API")
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=20)
    except ValueError as fault:
        raise UsageError(f"the form can't be read: {fault}") from fault
    return {name: values[-1] for name, values in fields.items()}
