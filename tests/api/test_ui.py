"""The pages under `/ui`, as a program sees them: who gets in, what is refused, what a role may do, what is shown."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from counterfoil.api.door import Door, OwnTokens
from counterfoil.api.http import http_app
from counterfoil.service.access import Role
from counterfoil.service.application import Application
from counterfoil.service.tokens import Tokens
from tests.client.world import World, asked, begin, finished, turns

WHO: tuple[tuple[str, Role, str], ...] = (
    ("ada", "owner", ""),
    ("pia", "approver", "ada"),
    ("vic", "viewer", "ada"),
    ("eve", "owner", ""),
)
HOSTILE = '"><script>alert(1)</script>\x1b[2J\u202e'


class Site:
    """A served application with tokens of three people, and a browser without scripts."""

    def __init__(self, app: Application, served: Any, root: Path) -> None:
        self.app = app
        self.served = served
        tokens = Tokens(root / "state")
        now = 1_700_000_000_000_000
        self.bearers = {
            name: tokens.create(name, role, owner=owner, now=now, expires_at=0)[1] for name, role, owner in WHO
        }
        self._site = http_app(app, Door(verifier=OwnTokens(tokens), rate=0))

    def browser(self, name: str = "", **headers: str) -> httpx.AsyncClient:
        made = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self._site), base_url="http://127.0.0.1", headers=headers
        )
        if name:
            made.cookies.set("counterfoil_ui", self.bearers[name], path="/ui")
        return made


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with contextlib.AsyncExitStack() as stack:
        world = World(tmp_path, "local", stack)
        call = {"tool": "Bash", "arguments": {"command": f"echo '{HOSTILE}' >> runs.txt"}}
        served = await world.serve(turns(call))
        yield Site(served.app, served, tmp_path)


async def test_a_token_opens_the_pages_and_nothing_else_does(site: Site) -> None:
    async with site.browser() as browser:
        first = await browser.get("/ui")
        assert (first.status_code, first.headers["location"]) == (303, "/ui/login")
        assert (await browser.get("/ui/asks", headers={"x-fragment": "1"})).status_code == 401
        assert (await browser.get("/ui/events")).status_code == 401
        form = await browser.get("/ui/login")
        assert 'type="password"' in form.text and "<script" not in form.text
        wrong = await browser.post("/ui/login", data={"token": "cft_wrong"})
        assert wrong.status_code == 401 and "set-cookie" not in wrong.headers and "cft_wrong" not in wrong.text
        right = await browser.post("/ui/login", data={"token": f" {site.bearers['ada']} "})
        assert right.status_code == 303
        cookie = right.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/ui" in cookie
        inbox = await browser.get("/ui")
        assert inbox.status_code == 200 and "ada (owner)" in inbox.text and site.bearers["ada"] not in inbox.text
        assert (await browser.get("/v1/asks")).status_code == 401, "the API takes no cookie"
        await browser.post("/ui/logout")
        assert (await browser.get("/ui")).status_code == 303


async def test_other_origins_and_names_are_refused(site: Site) -> None:
    client = site.served.client()
    session = await begin(client)
    ask = (await asked(client, session)).ask.ask_id
    for headers in ({"origin": "http://evil.invalid"}, {"host": "evil.invalid"}, {"origin": "null"}):
        async with site.browser("ada", **headers) as browser:
            for method, path in (
                ("POST", f"/ui/asks/{ask}/answer"),
                ("POST", "/ui/login"),
                ("POST", "/ui/logout"),
                ("GET", "/ui"),
            ):
                refused = await browser.request(method, path, data={"answer": "allow once"})
                assert refused.status_code == 403, (headers, path)
    assert await client.get_ask(ask)


async def test_every_page_forbids_what_it_does_not_need(site: Site) -> None:
    async with site.browser("ada") as browser:
        for path in ("/ui", "/ui/login", "/ui/sessions", "/ui/asks", "/ui/ui.js", "/ui/sessions/ses_none"):
            headers = (await browser.get(path)).headers
            assert "default-src 'none'" in headers["content-security-policy"], path
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


@pytest.mark.parametrize("name", ["ada", "pia", "vic", "eve"])
async def test_what_a_role_sees_and_may_do(site: Site, name: str) -> None:
    client = site.served.client("ada")
    session = await begin(client, title=HOSTILE)
    ask = (await asked(client, session)).ask
    sees, answers = name != "eve", name in ("ada", "pia")
    async with site.browser(name) as browser:
        inbox = (await browser.get("/ui")).text
        assert (ask.ask_id in inbox) == sees and ("/answer" in inbox) == answers
        assert "<script>alert" not in inbox and "\x1b" not in inbox and "\u202e" not in inbox
        assert (session in (await browser.get("/ui/sessions")).text) == sees
        page = await browser.get(f"/ui/sessions/{session}")
        assert page.status_code == (200 if sees else 404) and "<script>alert" not in page.text
        missing = await browser.get("/ui/sessions/ses_0000000000000000000000000")
        if not sees:
            assert page.text.replace(session, "ses_0000000000000000000000000") == missing.text
        done = await browser.post(f"/ui/asks/{ask.ask_id}/answer", data={"answer": "deny once", "note": "no & <b>"})
        assert done.status_code == (303 if answers else 403 if sees else 404)
    if answers:
        await finished(client, session)
        async with site.browser("ada") as browser:
            told = (await browser.get(f"/ui/sessions/{session}")).text
            assert "no &amp; &lt;b&gt;" in told and f"by {name} (user)" in told and "denied" in told


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "a form is wanted"),
        ({"x": "y"}, "not a choice"),
        ({"answer": "yes"}, "not a choice"),
        ({"answer": "allow forever"}, "not a choice"),
        ({"answer": "withhold once"}, "withhold"),
        ({"answer": "allow once", "note": "x" * 100_000}, "larger than"),
        (b'{"answer": "allow once"}', "a form is wanted"),
    ],
)
async def test_a_bad_form_changes_nothing(site: Site, fields: Any, says: str) -> None:
    client = site.served.client()
    session = await begin(client)
    ask = (await asked(client, session)).ask.ask_id
    given = {"content": fields} if isinstance(fields, bytes) else {"data": fields}
    async with site.browser("ada") as browser:
        refused = await browser.post(f"/ui/asks/{ask}/answer", **given)
        assert refused.status_code in (400, 409, 413) and says in refused.text
    assert (await client.get_ask(ask)).ask.ask_id == ask


async def test_the_same_answer_again_is_one_answer_and_another_one_is_refused(site: Site) -> None:
    client = site.served.client()
    session = await begin(client)
    ask = (await asked(client, session)).ask.ask_id
    async with site.browser("ada", **{"x-fragment": "1"}) as browser:
        (key,) = re.findall(r'name="key" value="(\w+)"', (await browser.get("/ui/asks")).text)
        fields = {"answer": "allow once", "key": key}
        first, second = await asyncio.gather(*(browser.post(f"/ui/asks/{ask}/answer", data=fields) for _ in range(2)))
        assert (first.status_code, second.status_code) == (200, 200) and first.text == second.text
        late = await browser.post(f"/ui/asks/{ask}/answer", data={"answer": "deny once", "key": "other"})
        assert late.status_code == 409
    await finished(client, session)
    assert (await client.verify_log(session)).intact
