"""The screens behind the commands: calls, evidence, sessions, guardrails, hooks, permissions, usage, help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.events import HookRecord
from counterfoil.identity import SessionID, ToolCallID
from counterfoil.scrollback.views import SEVERITIES
from counterfoil.scrollback.visibility import review_words
from counterfoil.tui import words
from counterfoil.tui.detail import of_call, of_lines, of_record
from counterfoil.tui.link import Fact
from counterfoil.tui.naming import NameScreen
from counterfoil.tui.sheet import SheetScreen
from counterfoil.tui.table import Chosen, Record, TableScreen

if TYPE_CHECKING:
    from counterfoil.tui.app import CounterfoilApp

KEYS = """\
prompt
  enter            send; while a run goes on: steer it
  shift+enter      new line (also alt+enter, ctrl+j, or \\ at the end)
  ↑ ↓              history
  / @              complete a command, a file: ↑ ↓ choose, tab takes
  ctrl+g           write in $EDITOR
  esc              interrupt the run
  tab              to the scrollback and back
  pgup pgdn        page the scrollback
scrollback
  ↑ ↓              select an entry
  enter, click     open it, show it whole, close it
  c                copy it
  home end         to the beginning; to the end, and follow
  esc              back to the prompt
questions
  y s a            yes: once, for this session, always
  t                always, with the rule changed first
  n e              no, no with a note to the model
  r w              a held result: release once, withhold
  esc              later: it stays open (/asks asks again)
everywhere
  F1               this page
  F9               notices: important ones, all, as configured
  ctrl+t           every call
  ctrl+c twice     quit
"""


async def help_(app: CounterfoilApp, rest: str) -> None:
    """All keys and commands."""
    from counterfoil.tui.commands import known

    lines = [*KEYS.rstrip("\n").split("\n"), "commands", *(f"  /{name:<15} {what}" for name, what in known())]
    app.push_screen(SheetScreen("keys and commands", of_lines(lines)))


async def toolcalls(app: CounterfoilApp, rest: str) -> None:
    """Every call."""
    columns = ("tool", "target", "state", "executed", "time", "evidence", "approval", "id")
    rows = [
        Record(
            key=view.tool_call_id,
            cells=(
                view.tool,
                words.target(view),
                words.state(view),
                view.executed or words.NONE,
                words.duration(view.duration_ms),
                words.counted(view.records) or words.NONE,
                words.approval(view),
                view.tool_call_id,
            ),
        )
        for view in app.feed.calls
    ]

    def chosen(key: str) -> None:
        view = app.feed.seen.call(ToolCallID(key))
        if view is not None:
            app.push_screen(SheetScreen(f"{view.tool} {view.tool_call_id}", of_call(view)))

    app.push_screen(TableScreen("calls", columns, rows, kind=2, chosen=chosen, empty="no call yet"))


async def evidence(app: CounterfoilApp, rest: str) -> None:
    """Every record, and what stands alone."""
    seen = app.feed.seen
    found: dict[str, tuple[HookRecord | None, str, object]] = {}
    rows: list[Record] = []
    for record in sorted(seen.records, key=lambda r: SEVERITIES.index(r.severity)):
        call = record.tool_call_id or words.NONE
        found[record.hook_id] = (record, "", record.tool_call_id)
        cells = (record.severity, record.definition.name, record.phase, record.outcome, _message(record), call)
        rows.append(Record(key=record.hook_id, cells=cells))
    for entry in seen.evidence:
        if entry.record is None or entry.record.hook_id not in found:
            key = f"standalone {entry.key}"
            found[key] = (entry.record, words.standalone(entry), entry.key)
            rows.append(Record(key=key, cells=(entry.severity, "", "", entry.why, words.standalone(entry), "")))

    def chosen(key: str) -> None:
        record, text, _ = found[key]
        paint = of_record(record) if record is not None else of_lines([text])
        app.push_screen(SheetScreen(key, paint))

    def jump(key: str) -> None:
        place = found[key][2]
        if isinstance(place, str):
            app.pop_screen()
            app.view.focus()
            app.view.choose(place)

    columns = ("severity", "by", "phase", "outcome", "message", "call")
    keys = {"j": ("to its card", jump)}
    app.push_screen(TableScreen("evidence", columns, rows, kind=0, chosen=chosen, keys=keys, empty="none"))


async def sessions(app: CounterfoilApp, rest: str) -> None:
    """The sessions that are stored."""

    async def rows() -> list[Record]:
        return [
            Record(
                key=line.session_id,
                cells=(
                    words.when(line.updated_at),
                    line.title or "(no title)",
                    line.status + (f" {line.open_asks}?" if line.open_asks else ""),
                    line.model,
                    line.workspace,
                ),
            )
            for line in await app.link.sessions()
        ]

    async def opened(key: str) -> None:
        app.pop_screen()
        await app.open(SessionID(key))

    async def forked(key: str) -> None:
        await app.guarded(app.link.fork(SessionID(key)))
        screen.replace(await rows())

    def renamed(key: str) -> None:
        async def named(title: str) -> None:
            await app.guarded(app.link.rename(SessionID(key), title))
            screen.replace(await rows())

        app.push_screen(NameScreen("new title", named))

    def deleted(key: str) -> None:
        async def sure(answer: str) -> None:
            if answer.strip() == "delete":
                await app.guarded(app.link.delete(SessionID(key)))
                screen.replace(await rows())

        app.push_screen(NameScreen(f"{key}: write “delete” to delete it for good", sure))

    keys = {"f": ("fork", forked), "r": ("rename", renamed), "d": ("delete", deleted)}
    columns = ("changed", "title", "status", "model", "folder")
    screen = TableScreen("sessions", columns, await rows(), kind=2, chosen=opened, keys=keys, empty="none is stored")
    app.push_screen(screen)


async def guardrails(app: CounterfoilApp, rest: str) -> None:
    """Which checker reviews what, and how it does. An outage is an outage: it is never shown as a finding."""
    facts = await app.link.checkers()
    reviews = [r for r in app.feed.seen.records if r.review is not None]
    rows = []
    for fact in facts:
        mine = [r for r in reviews if r.definition.name == fact.cells[0]]
        outages = [r for r in mine if r.review is not None and r.review.outage is not None]
        health = f"{len(mine)} review{'s' if len(mine) > 1 else ''}" if mine else "unused"
        health += f", {len(outages)} by outage" if outages else ""
        rows.append((fact, health, outages))

    def chosen(key: str) -> None:
        fact, health, outages = rows[int(key)]
        lines = [*fact.detail.split("\n"), f"health in this session: {health}"]
        lines += [f"outage: {words.record(record)}  {record.tool_call_id}" for record in outages]
        app.push_screen(SheetScreen(fact.cells[0], of_lines(lines)))

    records = [Record(key=str(at), cells=(*fact.cells, health)) for at, (fact, health, _) in enumerate(rows)]
    columns = ("policy", "jobs", "tools", "checker", "enforcement", "health here")
    app.push_screen(TableScreen("guardrails", columns, records, chosen=chosen, empty="no review is configured"))


async def hooks(app: CounterfoilApp, rest: str) -> None:
    """The configured hooks."""
    facts = await app.link.hooks()
    columns = ("phase", "name", "matcher", "kind", "tier")
    screen = TableScreen(
        "hooks", columns, _records(facts), kind=0, chosen=_telling(app, facts), empty="none configured"
    )
    app.push_screen(screen)


async def permissions(app: CounterfoilApp, rest: str) -> None:
    """The rules that hold."""
    facts = await app.link.rules()

    async def revoke(key: str) -> None:
        nonlocal facts
        rule = facts[int(key)].revocable
        if not rule:
            app.say("a rule of a file is changed in its file", severity="warning")
            return
        await app.guarded(app.link.revoke(rule))
        facts = await app.link.rules()
        screen.replace(_records(facts))

    keys = {"d": ("forget a learned rule", revoke)}
    columns = ("does", "rule", "from")
    screen = TableScreen("permissions", columns, _records(facts), kind=0, keys=keys, empty="no rule")
    app.push_screen(screen)


async def usage(app: CounterfoilApp, rest: str) -> None:
    """Tokens and cost."""
    session, begin = app.feed.seen.session, app.link.defaults
    model, used = session.model or begin.model, session.usage
    cost = app.link.cost(session.provider or begin.provider, model, used)
    lines = [
        f"model: {model}",
        f"requests: {used.requests}",
        f"input tokens: {used.input_tokens} (from cache {used.cache_read_tokens}, into it {used.cache_write_tokens})",
        f"output tokens: {used.output_tokens} (reasoning {used.reasoning_tokens})",
        f"cost: {'unknown for this model' if cost is None else f'${cost:.4f}'}",
        f"context window: {app.link.window(model)}",
    ]
    app.push_screen(SheetScreen("usage of this session", of_lines(lines)))


async def diagnostics(app: CounterfoilApp, rest: str) -> None:
    """What helps to find a fault, in lines that can be copied into a report."""
    seen, size = app.feed.seen, app.size
    rows = [
        *await app.link.diagnostics(),
        ("session", f"{seen.root}, shown up to offset {seen.through}"),
        ("shown", f"{len(seen)} entries, {len(app.feed.calls)} calls, {len(seen.records)} records"),
        ("standing alone", f"{len(seen.evidence)} pieces of evidence (/evidence)"),
        ("terminal", f"{size.width}×{size.height}, theme {app.theme}"),
    ]
    app.push_screen(SheetScreen("diagnostics", of_lines([f"{name}: {text}" for name, text in rows])))


def _message(record: HookRecord) -> str:
    return record.message or (review_words(record) if record.review is not None else "")


def _records(facts: list[Fact]) -> list[Record]:
    return [Record(key=str(at), cells=fact.cells) for at, fact in enumerate(facts)]


def _telling(app: CounterfoilApp, facts: list[Fact]) -> Chosen:
    def chosen(key: str) -> None:
        fact = facts[int(key)]
        app.push_screen(SheetScreen(" ".join(fact.cells[:2]), of_lines(fact.detail.split("\n"))))

    return chosen
