"""The page: it says all that the scrollback says, needs nothing else, and no content can become markup."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import events as ev
from counterfoil.events.codec import envelope_of
from counterfoil.identity import AskID
from counterfoil.scrollback import Scrollback
from counterfoil.scrollback.page import document
from counterfoil.scrollback.page.words import block, line, prose
from tests.scrollback import builders
from tests.support.sessions import SESSION, Log, session_log
from tests.support.strategies import examples

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'\" onclick=alert(1) x='",
    "[x](javascript:alert(1)) [y](data:text/html,<script>alert(1)</script>)",
    "![remote](http://example.invalid/pixel.png)",
    "<!-- --><style>*{display:none}</style>",
    "\x1b[2J\u202e\u2066\x00\x9b",
    "</pre></details><h1>approved</h1>",
    "&lt;b&gt; &amp; ]]>",
    "a" * 10_000,
]


class Reader(HTMLParser):
    """All tags and attributes of a page, and its text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def harmless(reader: Reader) -> None:
    for tag, attributes in reader.tags:
        assert tag not in ("iframe", "object", "embed", "form", "link", "base", "svg"), tag
        assert not any(name.startswith("on") for name in attributes), attributes
        for name in ("src", "href"):
            value = attributes.get(name)
            assert value is None or re.match(r"https?:|mailto:|data:image/|#|/|[\w.%-]*$", value), value
    assert sum(tag == "script" for tag, _ in reader.tags) <= 1


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    "place", ["prompt", "message", "argument", "tool", "result", "reason", "note", "record", "title"]
)
def test_no_content_becomes_markup(text: str, place: str) -> None:
    page = document(scrollback(place, text))
    reader = read(page)
    harmless(reader)
    assert not any(ord(c) < 32 and c not in "\n\t" for c in page) and "\u202e" not in page and "\x9b" not in page
    assert not any(tag == "img" for tag, _ in reader.tags)
    assert "approved" not in [data for data in reader.text if data == "approved"] or place == "message"


@given(st.text())
def test_text_stays_text(text: str) -> None:
    for made in (line(text), block(text)):
        assert {tag for tag, _ in read(made).tags} <= {"pre"}
    harmless(read(prose(text)))


@examples(40)
@given(session_log())
def test_the_page_names_every_call_record_and_ask_of_any_session(log: Log) -> None:
    seen = Scrollback(SESSION).extend(envelope_of(row) for row in log.rows)
    page = document(seen)
    reader = read(page)
    harmless(reader)
    text = "".join(reader.text)
    for view in seen.calls:
        assert view.tool_call_id in text
        for record in view.records:
            assert record.hook_id in text
        for ask in view.asks:
            assert ask.ask.ask_id in text
    assert page.count('<div class="entry">') == len(seen.entries)
    assert "PAIRING-CANARY" not in page


def test_the_page_loads_nothing_and_runs_its_own_script_alone() -> None:
    page = document(scrollback("message", "hello"))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert html.unescape(policy).startswith("default-src 'none'")
    assert "http://" not in page and "https://" not in page


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_shows_it(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    file = tmp_path / "page.html"
    file.write_text(document(scrollback("message", "**bold** <script>document.title='owned'</script>")))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    more = ["--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run(
        [CHROMIUM, *flags, *more, file.as_uri()], capture_output=True, text=True, timeout=60, check=False
    )
    assert "<strong>bold</strong>" in done.stdout, done.stderr
    assert "<title>t</title>" in done.stdout, "no content was run"


def scrollback(place: str, text: str) -> Scrollback:
    """A session with one call, and `text` in one place of it."""

    def at(name: str, otherwise: str) -> str:
        return text if place == name else otherwise

    log = builders.Log()
    call = builders.accepted("call_a", at("tool", "Bash"), command=at("argument", "ls"))
    ask = ev.Ask(
        ask_id=AskID("ask_1"),
        origin_session_id=builders.ROOT,
        tool_call_id=call.tool_call_id,
        tool=call.tool,
        arguments=call.arguments,
        arguments_digest=call.arguments_digest,
        reason=at("reason", "r"),
    )
    receipt = ev.Receipt(
        ask_id=ask.ask_id,
        origin_session_id=ask.origin_session_id,
        tool_call_id=ask.tool_call_id,
        verdict="allow",
        decided_by=builders.LOCAL,
        decided_at=1,
        arguments_digest=ask.arguments_digest,
        note=at("note", "n"),
    )
    log.add(
        msgspec.structs.replace(builders.created(), title=at("title", "t")),
        ev.RunStarted(run_id=builders.RUN),
        ev.UserPrompt(parts=ev.text_parts(at("prompt", "p"))),
        ev.AssistantMessage(turn=1, text=at("message", "m"), reasoning=at("message", "m")),
        call,
        builders.record("hook_1", message=at("record", "said"), diff=at("record", "d")),
        ev.AskOpened(ask=ask),
        ev.AskSettled(receipt=receipt),
        builders.finished("call_a", text=at("result", "done")),
    )
    return Scrollback(builders.ROOT).extend(log.envelopes)


def test_an_image_is_shown_only_as_what_it_says_it_is() -> None:
    from counterfoil.scrollback.page.calls import part_html

    good = part_html(ev.ImagePart(media_type="image/png", data="aGk="))
    assert 'src="data:image/png;base64,aGk="' in good
    for part in (
        ev.ImagePart(media_type="image/svg+xml", data="aGk="),
        ev.ImagePart(media_type="image/png", data='"><script>'),
    ):
        assert "<img" not in part_html(part) and "<script" not in part_html(part)
