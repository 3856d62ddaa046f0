"""The page: head, entries in order, style and the one small script, all inside."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any

from counterfoil.scrollback import entries as en
from counterfoil.scrollback.page.calls import ask_html, card, part_html, record_html
from counterfoil.scrollback.page.words import block, identity, line, prose, when
from counterfoil.scrollback.reducer import Scrollback

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--quiet:#59636e;--line:#d1d9e0;--soft:#f6f8fa;--red:#b3261e;
--amber:#8a5a00;--green:#1a7f37;--blue:#0a58ca}
@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--quiet:#9198a1;--line:#3d444d;--soft:#151b23;
--red:#ff8a80;--amber:#e3b341;--green:#56d364;--blue:#79b8ff}}
*{box-sizing:border-box}body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,sans-serif}h1{font-size:1.4rem;margin:.2rem 0}h4{margin:.8rem 0 .2rem}
pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:.6rem;overflow:auto;
white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0;font:13px/1.45 ui-monospace,monospace}
.quiet,time{color:var(--quiet);font-size:.85rem}.id{font:12px ui-monospace,monospace;overflow-wrap:anywhere}
.id button{border:0;background:none;color:var(--blue);cursor:pointer;padding:0 .3rem;font:inherit}
.entry{margin:1rem 0}.prompt{border-left:4px solid var(--blue);padding-left:.8rem}
.card,.record{border:1px solid var(--line);border-radius:6px;padding:.4rem .8rem;margin:.5rem 0}
summary{cursor:pointer;overflow-wrap:anywhere}.tool{font-weight:600}.target{font:13px ui-monospace,monospace}
.badges{list-style:none;margin:.2rem 0 0;padding:0;font-size:.85rem}
.ok,.released{color:var(--green)}.warning,.held,.asked{color:var(--amber)}
.blocking,.conflict,.denied,.blocked,.error,.withheld,.interrupted{color:var(--red)}
img{max-width:100%}:focus-visible{outline:2px solid var(--blue)}
"""
_SCRIPT = """
document.addEventListener("click",e=>{const b=e.target.closest("[data-copy]");if(!b)return;e.preventDefault();
const t=b.dataset.copy,done=()=>{b.textContent="copied";setTimeout(()=>{b.textContent="copy"},1200)};
if(navigator.clipboard)navigator.clipboard.writeText(t).then(done,()=>{});});
"""


def document(seen: Scrollback) -> str:
    """The scrollback as one self-contained page. It loads nothing and runs nothing but its own script."""
    head = seen.session
    title = line(head.title or head.session_id)
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    facts = [
        identity(head.session_id),
        line(head.workspace),
        f"{line(head.provider)} {line(head.model)}",
        f"mode {head.mode}",
        head.status,
        f"{head.usage.input_tokens} tokens in, {head.usage.output_tokens} out",
        when(head.updated_at),
    ]
    body = "\n".join(f'<div class="entry">{entry_html(entry, seen)}</div>' for entry in seen.entries)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f'<body><header><h1>{title}</h1><p class="quiet">{" · ".join(filter(None, facts))}</p></header>\n'
        f"<main>{body}</main><script>{_SCRIPT}</script></body></html>\n"
    )


def entry_html(entry: en.Entry, seen: Scrollback) -> str:
    """One entry."""
    return _PAINTERS[type(entry)](entry, seen)


def _prompt(entry: en.PromptEntry, seen: Scrollback) -> str:
    who = {"human": "Person", "steer": "Person, while it ran", "harness": "Harness"}[entry.prompt_source]
    inner = "".join(part_html(part) for part in entry.parts)
    return f'<section class="prompt"><p class="quiet">{who} {when(entry.source.recorded_at)}</p>{inner}</section>'


def _message(entry: en.MessageEntry, seen: Scrollback) -> str:
    reasoning = (
        f'<details><summary class="quiet">reasoning</summary>{prose(entry.reasoning)}</details>'
        if entry.reasoning
        else ""
    )
    return f"<section>{reasoning}{prose(entry.text)}</section>"


def _card(entry: en.ToolCard, seen: Scrollback) -> str:
    view = seen.call(entry.tool_call_id)
    return card(view) if view is not None else ""


def _notice(entry: en.NoticeEntry, seen: Scrollback) -> str:
    return f'<p class="{entry.severity}">{line(entry.text)}</p>'


def _run(entry: en.RunEntry, seen: Scrollback) -> str:
    fault = f": {line(entry.error.message)}" if entry.error is not None else ""
    return f'<p class="quiet">run finished: {entry.stop_reason}{fault} {when(entry.source.recorded_at)}</p>'


def _compaction(entry: en.CompactionEntry, seen: Scrollback) -> str:
    summary = f'<summary class="quiet">history was compacted ({line(entry.trigger)})</summary>'
    return f"<details>{summary}{prose(entry.summary)}</details>"


def _evidence(entry: en.EvidenceEntry, seen: Scrollback) -> str:
    why = f"<p>{line(entry.why.replace('_', ' '))} {line(entry.reason)}</p>"
    if entry.record is not None:
        inner = record_html(entry.record)
    elif entry.ask is not None:
        inner = ask_html(entry.ask)
    elif entry.receipt is not None:
        inner = f"<p>receipt of {identity(entry.receipt.ask_id)}: {line(entry.receipt.verdict)}</p>"
    else:
        inner = f"<p>withdrawn: {identity(entry.withdrawal.ask_id)}</p>" if entry.withdrawal is not None else ""
    return f'<section class="{entry.severity}">{why}{inner}</section>'


def _unknown(entry: en.UnknownEntry, seen: Scrollback) -> str:
    return f"<details><summary>unknown: {line(entry.kind)} {line(entry.reason)}</summary>{block(entry.body)}</details>"


_PAINTERS: dict[type[Any], Callable[[Any, Scrollback], str]] = {
    en.PromptEntry: _prompt,
    en.MessageEntry: _message,
    en.ReasoningEntry: _message,
    en.ToolCard: _card,
    en.SubagentCard: _card,
    en.TeamCard: _card,
    en.ParallelCard: _card,
    en.NoticeEntry: _notice,
    en.RunEntry: _run,
    en.CompactionEntry: _compaction,
    en.EvidenceEntry: _evidence,
    en.UnknownEntry: _unknown,
}
