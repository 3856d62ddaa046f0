"""The demo's later scenes: reviews in a session of their own, and a run that is parked in one process and goes on in
another.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path

import msgspec

from counterfoil.cli import exits
from counterfoil.cli.asking import Asker
from counterfoil.cli.demo import play, tell
from counterfoil.cli.terminal import print_line
from counterfoil.config import ProviderSettings, Settings
from counterfoil.config.values import ReviewSettings
from counterfoil.ports import ReviewRule

CHECKERS = ("objector", "suspicious", "absent")
_RULES = (
    ReviewRule(name="commands", jobs=("action",), tools=("Bash",), checker="objector/demo"),
    ReviewRule(name="what is read", jobs=("inbound",), tools=("Read",), checker="suspicious/demo"),
    ReviewRule(name="edits", jobs=("action",), tools=("Write",), checker="absent/demo"),
)
_ASK = re.compile(r"\bask_\w+")
_SESSION = re.compile(r"\bses_\w+")


async def reviews(settings: Settings, folder: Path, asker: Asker) -> int:
    """An action concern, a held result and a checker's outage. Returns an exit code."""
    print_line("— Reviews: a model checks calls before they start, and results before anybody sees them —")
    print_line()
    with as_file(files("counterfoil.cli") / "data") as data:
        providers = {
            name: ProviderSettings(name=name, wire="scripted", base_url=str(data / "checkers" / f"{name}.yaml"))
            for name in CHECKERS
        }
        model = msgspec.structs.replace(settings.model, script=str(data / "demo_reviews.yaml"))
        rules = tuple(msgspec.structs.replace(rule, tier="builtin") for rule in _RULES)
        reviewed = msgspec.structs.replace(
            settings,
            model=model,
            providers={**settings.providers, **providers},
            reviews=ReviewSettings(rules=rules, keep_detail=True),
        )
        outcome, seen = await play(reviewed, folder, asker, "Publish the greeting.", title="demo: reviews")
    tell(seen)
    _say(["reviews", "list", seen.root, "--state-dir", str(settings.state_dir)])
    return exits.of_outcome(outcome)


def parked(settings: Settings, folder: Path, answer: str) -> int:
    """A run that waits for a person when its process ends; the answer; and another process that goes on."""
    print_line("— A run that is parked, and another process that goes on with it —")
    print_line()
    with as_file(files("counterfoil.cli") / "data" / "demo_parked.yaml") as script:
        where = ["--state-dir", str(settings.state_dir)]
        ran = _say(
            ["run", "Run the check.", "--ask", "wait", "--script", str(script), "--workspace", str(folder), *where]
        )
        asks = _say(["asks", *where], quiet=True)
        session = _SESSION.search(asks.stdout)
        ask = _ASK.search(asks.stdout)
        if ran.returncode != exits.PARKED or ask is None or session is None:
            print_line("the run wasn't parked")
            return exits.FAILED
        _say(["answer", ask[0], answer, *where])
        return _say(["resume", session[0], "--script", str(script), *where]).returncode


def _say(arguments: list[str], *, quiet: bool = False) -> subprocess.CompletedProcess[str]:
    """Run one command of this program in a process of its own, and show both."""
    done = subprocess.run(
        [sys.executable, "-m", "counterfoil", *arguments],
        env=os.environ | {"NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if not quiet:
        shown = arguments[: arguments.index("--script")] if "--script" in arguments else arguments[:3]
        print_line(f"$ counterfoil {' '.join(shown)}")
        print_line(done.stdout.rstrip())
        print_line(f"(exit code {done.returncode})")
        print_line()
    return done
