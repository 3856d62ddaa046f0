"""What the pages say. Pure: values in, HTML out. Whatever others wrote is escaped and its controls are made visible."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from counterfoil.events import HookRecord
from counterfoil.ports import SessionSummary
from counterfoil.scrollback import EntryKey, Scrollback, edits
from counterfoil.scrollback.page.calls import record_html
from counterfoil.scrollback.page.document import entry_html
from counterfoil.scrollback.page.words import block, identity, line, pretty, when
from counterfoil.service.frames import OpenAsk

SHOWN = 200
"""Entries of a session that a page shows at first: the last ones."""


def page(title: str, body: str, *, who: str = "", script: bool = True) -> str:
    """A whole page."""
    nav = (
        '<nav aria-label="pages"><a href="/ui">Inbox</a> <a href="/ui/sessions">Sessions</a>'
        f'<span class="quiet who">{line(who)}</span></nav>'
        if who
        else ""
    )
    code = '<script src="/ui/ui.js" defer></script>' if script else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{line(title)} · Counterfoil</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="/ui/ui.css">{code}</head>\n'
        f'<body><a class="skip" href="#main">to the content</a><header>{nav}'
        f'<p id="connection" role="status" aria-live="polite"></p></header>\n'
        f'<main id="main">{body}</main></body></html>\n'
    )


def login(problem: str = "") -> str:
    """Where a token is asked for."""
    said = f'<p class="blocking" role="alert">{line(problem)}</p>' if problem else ""
    return page(
        "Log in",
        f'<h1>Counterfoil</h1>{said}<form class="login" method="post" action="/ui/login">'
        '<label for="token">Token</label>'
        '<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>'
        "<button>Log in</button>"
        '<p class="quiet"><code>counterfoil token create NAME</code> makes one.</p></form>',
        script=False,
    )


def inbox(asks: Iterable[str], *, who: str, leave: bool) -> str:
    """All that waits for an answer."""
    return page("Inbox", f"<h1>Inbox</h1>{ask_list(asks, '/ui/asks')}{_leave(leave)}", who=who)


def _leave(leave: bool) -> str:
    return '<form method="post" action="/ui/logout"><button class="plain">Log out</button></form>' if leave else ""


def ask_list(asks: Iterable[str], source: str) -> str:
    """The list of questions, which the script keeps live from `source`."""
    inner = "".join(asks)
    return (
        f'<p id="count" role="status" aria-live="polite"></p>'
        f'<div id="asks" data-source="{html.escape(source)}">{inner}</div>'
        '<p id="none" class="quiet">Nothing waits for an answer.</p>'
    )


def ask(found: OpenAsk, records: Sequence[HookRecord], key: str, *, may_answer: bool) -> str:
    """One question: exactly what would run, why, for whom, what reviews found, and the answers."""
    asked = found.ask
    origin = (
        "this session"
        if asked.origin_session_id == found.session_id
        else f"child session {identity(asked.origin_session_id)}"
    )
    link = f'<a href="/ui/sessions/{quote(found.session_id)}">{line(found.session_title or found.session_id)}</a>'
    difference = edits.of_edit(asked.tool, asked.arguments)
    parts = [
        f"<h2>{line(asked.tool)}: needs your approval</h2>",
        f'<p class="warning">{line(asked.reason)}</p>',
        f'<p class="quiet">{link} · {origin} · {when(found.opened_at)}</p>',
    ]
    concerns = [record for record in records if record.severity != "benign"]
    parts += [record_html(record) for record in concerns]
    if asked.tool == "Bash" and isinstance(command := asked.arguments.get("command"), str):
        parts.append(block(f"$ {command}"))
    if difference is not None:
        parts.append(block("\n".join(difference)))
    parts += ["<h3>Exactly this</h3>", pretty(asked.arguments)]
    if asked.result_digest is not None:
        parts.append(
            f"<p>It ran. Its result of {asked.result_size} bytes is held back: {line(asked.result_digest)}</p>"
        )
        if found.untrusted_preview:
            parts.append('<p class="blocking">Untrusted: it comes from outside. The beginning of it:</p>')
            parts.append(block(found.untrusted_preview))
    parts.append(f'<p class="quiet">call {identity(asked.tool_call_id)} ask {identity(asked.ask_id)}</p>')
    if may_answer:
        parts.append(_answers(found, key))
    else:
        parts.append('<p class="quiet">Your role may read this and not answer it.</p>')
    return f'<article class="card ask" data-ask="{line(asked.ask_id)}" tabindex="-1">{"".join(parts)}</article>'


def _answers(found: OpenAsk, key: str) -> str:
    asked = found.ask
    yes, no = ("release", "withhold") if "release" in asked.choices else ("allow", "deny")
    words = {"release": "Release once", "withhold": "Withhold", "allow": "Approve once", "deny": "Deny"}
    wider = ""
    if asked.rule is not None and yes == "allow":
        wider = (
            f"<details><summary>Approve more than this once</summary><p>The rule that is learned: "
            f"<code>{line(asked.rule)}</code></p>"
            '<button name="answer" value="allow session">For this session</button> '
            '<button name="answer" value="allow always">Always, in this folder</button></details>'
        )
    name = line(asked.ask_id)
    return (
        f'<form method="post" action="/ui/asks/{quote(asked.ask_id)}/answer">'
        f'<input type="hidden" name="key" value="{line(key)}">'
        f'<label for="note-{name}">Note to the model, with a no</label>'
        f'<textarea id="note-{name}" name="note" rows="2" maxlength="4000"></textarea>'
        f'<p class="keys"><button class="yes" name="answer" value="{yes} once">{words[yes]}</button> '
        f'<button class="no" name="answer" value="{no} once">{words[no]}</button></p>{wider}'
        '<p class="said" role="status"></p></form>'
    )


def sessions(found: Sequence[SessionSummary], more: str, *, who: str, leave: bool) -> str:
    """A page of sessions."""
    rows = "".join(
        f'<li class="card"><a href="/ui/sessions/{quote(s.session_id)}">{line(s.title or s.session_id)}</a>'
        f' <span class="state {line(s.status)}">{line(s.status)}</span>'
        + (f' <b class="warning">{s.open_asks} open</b>' if s.open_asks else "")
        + f'<br><span class="quiet">{line(s.model)} · {line(s.workspace)} · {when(s.updated_at)}</span></li>'
        for s in found
    )
    following = f'<p><a href="/ui/sessions?page={quote(more)}">older</a></p>' if more else ""
    body = f'<h1>Sessions</h1><ul class="list">{rows}</ul>' if rows else "<h1>Sessions</h1><p>None yet.</p>"
    return page("Sessions", body + following + _leave(leave), who=who)


def session(seen: Scrollback, asks: Iterable[str], *, who: str, every: bool) -> str:
    """One session, live: its last entries, and what it asks."""
    name = quote(seen.root)
    first = 0 if every else max(0, len(seen) - SHOWN)
    older = f'<p><a href="/ui/sessions/{name}?all=1">{first} older entries</a></p>' if first else ""
    body = "".join(entry(seen, position) for position in range(first, len(seen)))
    return page(
        seen.session.title or seen.root,
        f'<div id="head">{head(seen)}</div>{older}'
        f'<div id="entries" data-source="/ui/sessions/{name}/events" data-after="{seen.through}">{body}</div>'
        f'<div id="live"></div>{ask_list(asks, f"/ui/asks?session={name}")}',
        who=who,
    )


def head(seen: Scrollback) -> str:
    """What a session is, and how it stands."""
    view = seen.session
    facts = [
        line(view.workspace),
        f"{line(view.provider)} {line(view.model)}",
        f"mode {line(view.mode)}",
        f"{view.usage.input_tokens} tokens in, {view.usage.output_tokens} out",
    ]
    return (
        f'<h1>{line(view.title or seen.root)} <span class="state {line(view.status)}">{line(view.status)}</span></h1>'
        f'<p class="quiet">{identity(seen.root)} {" · ".join(facts)}</p>'
    )


def entry(seen: Scrollback, position: int) -> str:
    """One entry at its place; nothing where it stands on its card now."""
    found = seen.entry(position)
    inner = "" if found is None else entry_html(found, seen)
    return f'<div class="entry" data-at="{position}">{inner}</div>'


def changed(seen: Scrollback, keys: Iterable[EntryKey]) -> list[tuple[int, str]]:
    """The places that these keys have, each once and in order, as they are now."""
    places = sorted({place for key in keys if (place := seen.position(key)) is not None})
    return [(place, entry(seen, place)) for place in places]


def live(seen: Scrollback) -> str:
    """What streams just now."""
    text = seen.live.text or seen.live.reasoning
    return block(text) if text else ""
