"""Which question stands on the screen: one at a time, in order, each answered once and by its own id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.errors import CounterfoilError
from counterfoil.events import Ask
from counterfoil.identity import AskID
from counterfoil.tui.ask import AskScreen, Question, Said

if TYPE_CHECKING:
    from counterfoil.tui.app import CounterfoilApp


class Asking:
    """The queue of open questions of one session."""

    def __init__(self, app: CounterfoilApp) -> None:
        self._app = app
        self._screen: AskScreen | None = None
        self._later: set[AskID] = set()
        self._answering: set[AskID] = set()
        self._previews: dict[AskID, str] = {}
        self._fetching = False

    def forget(self) -> None:
        """Another session is opened: nothing of this one is asked any more."""
        if self._screen is not None:
            self._screen.close_elsewhere()
        self._later, self._answering, self._previews = set(), set(), {}

    def again(self) -> int:
        """Ask again what was put off. Returns how many questions are open."""
        self._later = set()
        self.look()
        return len(self._app.feed.open_asks)

    def look(self) -> None:
        """Close a question that others settled; put the next one where none stands."""
        waiting = [v.ask for v in self._app.feed.open_asks if v.ask.ask_id not in self._answering]
        current = self._screen
        if current is not None and not current.over:
            ids = [ask.ask_id for ask in waiting]
            if current.question.ask.ask_id not in ids:
                current.close_elsewhere()
            elif current.is_mounted:
                current.requeue(1, len(ids) - len(self._later & set(ids)))
            return
        wanted = [ask for ask in waiting if ask.ask_id not in self._later]
        if wanted and current is None and not self._fetching:
            self._put(wanted[0], len(wanted))

    def _put(self, ask: Ask, of: int) -> None:
        if "release" in ask.choices and ask.ask_id not in self._previews:
            self._fetching = True
            self._app.run_worker(self._fetch(ask), group="previews")
            return
        feed = self._app.feed
        call = feed.seen.call(ask.tool_call_id)
        root = ask.origin_session_id == feed.seen.root or call is not None
        question = Question(ask=ask, root=root, call=call, preview=self._previews.get(ask.ask_id, ""))
        screen = AskScreen(question, (1, of), clock=self._app.clock, typed=self._app.prompt.typed)
        self._screen = screen
        self._app.push_screen(screen, lambda said: self._chosen(screen, said))

    async def _fetch(self, ask: Ask) -> None:
        """Have the beginning of a held result at hand, then ask. Where it can't be had, it is asked without."""
        try:
            self._previews[ask.ask_id] = await self._app.link.preview(ask)
        except CounterfoilError as fault:
            self._previews[ask.ask_id] = ""
            self._app.say(f"the held result can't be shown: {fault}", severity="warning")
        finally:
            self._fetching = False
        self.look()

    def _chosen(self, screen: AskScreen, said: Said | None) -> None:
        self._screen = None
        ask = screen.question.ask
        if said is None:
            self._later.add(ask.ask_id)
            self._app.call_later(self.look)
            return
        self._answering.add(ask.ask_id)
        self._app.run_worker(self._answer(said), group="answers")

    async def _answer(self, said: Said) -> None:
        try:
            await self._app.link.answer(said.ask.ask_id, said.verdict, scope=said.scope, note=said.note, rule=said.rule)
        except CounterfoilError as fault:
            self._app.say(str(fault), severity="warning")
        self._answering.discard(said.ask.ask_id)
        self._app.wait_for_end()
        self.look()
