"""How fast command lines are reduced and judged: 10 000 different lines of the table and of generated ones."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from counterfoil.policy.permissions import Rules
from counterfoil.policy.shell import analyse
from tests.policy.lines import bash, rows

COUNT = 10_000


def main() -> None:
    table = [row.command for row in rows()]
    lines = [f"{table[n % len(table)]}\necho {n}" for n in range(COUNT)]
    rules = Rules(deny=("Bash(rm *)", "Read(.env)"), ask=("Bash(aws *)",), allow=("Bash(git *)", "Bash(ls *)"))
    analyse("true")
    began = time.perf_counter()
    for line in lines:
        analyse(line)
    reduced = time.perf_counter() - began
    began = time.perf_counter()
    for line in lines:
        bash(line + " ", rules)
    judged = time.perf_counter() - began
    print(f"{COUNT} lines reduced in {reduced:.2f} s ({COUNT / reduced:.0f} a second)")
    print(f"{COUNT} lines reduced and judged in {judged:.2f} s ({COUNT / judged:.0f} a second)")


if __name__ == "__main__":
    main()
