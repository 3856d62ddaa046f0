"""The inbox in a real browser against a real server: live, guarded, by keyboard, on a phone, through a kill -9."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from counterfoil.client.connect import connect
from counterfoil.events import AskOpened, Envelope, RunFinished
from tests.support.server import Server

playwright = pytest.importorskip("playwright.sync_api", reason="what drives a browser is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]
HOSTILE = "</pre><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"


def ran(*commands: str) -> dict[str, Any]:
    calls = [{"tool": "Bash", "arguments": {"command": c, "description": HOSTILE}} for c in commands]
    return {"turns": [{"text": "I look. " + HOSTILE, "calls": calls}, {"text": "All **done**."}]}


RUNS = ran("echo ran >> runs.txt")


@pytest.fixture
def page() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
        )
        made = browser.new_page()
        made.set_default_timeout(20_000)
        faults: list[str] = []
        made.on("pageerror", lambda fault: faults.append(str(fault)))
        yield made
        assert not faults
        browser.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


async def _begin(url: str, wanted: int) -> str:
    """Begin a run, and wait until so many questions are open. The session."""
    async with connect(url, {}) as client:
        made = await client.create(title="From the test")
        await client.prompt(made.session_id, "go")
        open_asks = 0
        async for frame in client.watch(made.session_id):
            if isinstance(frame, Envelope) and isinstance(frame.event, (AskOpened, RunFinished)):
                open_asks += 1
                if open_asks >= wanted:
                    break
        return made.session_id


def begin(url: str, wanted: int = 1) -> str:
    import asyncio
    import threading

    found: list[str] = []  # in a thread of its own: the browser's driver has the loop of this one
    thread = threading.Thread(target=lambda: found.append(asyncio.run(_begin(url, wanted))))
    thread.start()
    thread.join(30)
    return found[0]


def runs(home: Path) -> str:
    file = home / "w" / "runs.txt"
    return file.read_text() if file.exists() else ""


def cards(page: Any) -> Any:
    return page.locator(".ask:not(.over)")


def test_a_question_comes_by_itself_and_is_answered_by_keyboard_alone(page: Any, home: Path) -> None:
    server = Server(home, RUNS)
    try:
        page.goto(f"{server.url}/ui")
        page.get_by_text("Nothing waits for an answer.").wait_for()
        session = begin(server.url)
        card = cards(page)
        card.wait_for()
        approve = card.get_by_role("button", name="Approve once")
        assert approve.is_disabled(), "what just appeared answers nothing"
        assert "echo ran >> runs.txt" in card.inner_text() and page.title().startswith("(1)")
        playwright.expect(approve).to_be_enabled()
        approve.focus()
        page.keyboard.press("Enter")
        page.get_by_text("allow: recorded for call_").wait_for()
        playwright.expect(cards(page)).to_have_count(0)
        page.goto(f"{server.url}/ui/sessions")
        page.get_by_role("link", name="From the test").click()
        page.get_by_text("All done.").wait_for()
        assert runs(home) == "ran\n" and page.title() != "owned" and session in page.url
    finally:
        server.end()


def test_a_no_with_a_note_and_what_others_settle(page: Any, home: Path) -> None:
    server = Server(home, RUNS)
    try:
        begin(server.url)
        session = begin(server.url)
        page.goto(f"{server.url}/ui")
        playwright.expect(cards(page)).to_have_count(2)
        mine = page.locator(".ask").filter(has=page.locator(f"a[href$='{session}']"))
        theirs = page.locator(".ask").filter(has_not=page.locator(f"a[href$='{session}']"))
        mine.get_by_label("Note to the model").fill("not this one, please")
        asked = theirs.get_attribute("data-ask")
        assert page.request.post(f"{server.url}/v1/asks/{asked}/answer", data={"verdict": "allow"}).ok
        theirs.get_by_text("settled elsewhere, or withdrawn").wait_for()
        assert theirs.is_visible() and theirs.get_by_role("button", name="Deny").is_disabled(), "it stays where it was"
        assert mine.get_by_label("Note to the model").input_value() == "not this one, please"
        mine.get_by_role("button", name="Deny").click()
        page.get_by_text("deny: recorded for call_").wait_for()
        page.goto(f"{server.url}/ui/sessions/{session}")
        page.locator("#head").get_by_text("completed").wait_for()
        page.locator("details.card summary").first.click()
        page.get_by_text("note: not this one, please").wait_for()
        assert runs(home) == "ran\n" and page.title().startswith("From the test"), "no script of others ran"
    finally:
        server.end()


def test_a_killed_server_comes_back_and_the_answer_lands_once(page: Any, home: Path) -> None:
    first = Server(home, RUNS)
    port = first.port
    try:
        session = begin(first.url)
        page.goto(f"{first.url}/ui/sessions/{session}")
        approve = cards(page).get_by_role("button", name="Approve once")
        playwright.expect(approve).to_be_enabled()
        first.end(signal.SIGKILL)
        page.get_by_text("the server is gone: reconnecting").wait_for()
        approve.click()
        page.get_by_text("the answer is sent when it is back").wait_for()
        second = Server(home, RUNS, port=port)
        try:
            page.get_by_text("allow: recorded for call_").wait_for()
            page.get_by_text("All done.").wait_for()
            playwright.expect(page.locator("#connection")).to_be_empty()
            assert runs(home) == "ran\n"
            live = page.locator("#entries").inner_text()
            page.reload()
            assert page.locator("#entries").inner_text() == live, "what came live is what is there on opening"
        finally:
            second.end()
    finally:
        first.end()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_by_a_token(page: Any, home: Path, scheme: str) -> None:
    from counterfoil.service.tokens import Tokens

    _, bearer = Tokens(home / "state").create("ada", "owner", owner="", now=0, expires_at=0)
    server = Server(home, ran("echo " + "x" * 400), "--auth", "tokens")
    try:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": 360, "height": 640})
        page.goto(f"{server.url}/ui")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("that is no valid token").wait_for()
        page.get_by_label("Token").fill(bearer)
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("Nothing waits for an answer.").wait_for()
        headers = {"Authorization": f"Bearer {bearer}"}
        made = page.request.post(f"{server.url}/v1/sessions", data={}, headers=headers).json()["session"]["sessionId"]
        prompt = {"parts": [{"text": {"text": "go"}}]}
        assert page.request.post(f"{server.url}/v1/sessions/{made}/prompt", data=prompt, headers=headers).ok
        cards(page).wait_for()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, f"the page is {wide} px wide"
        for button in cards(page).locator(".keys button").all():
            assert button.bounding_box()["height"] >= 44, "large enough for a finger"
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Token").wait_for()
    finally:
        server.end()
