"""Cost of a turn: Counterfoil beside a hand-written floor and three known harnesses, in one run.

    python benchmarks/turns.py                      200 turns with the harnesses, 2 000 beside the floor
    python benchmarks/turns.py --turns 50 --rounds 1 --no-peers

The harnesses live in an environment of their own, made on first use (`benchmarks/.peers`, from
`benchmarks/peers/requirements.txt`) or given by `--peers-python`.
"""

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).parent
PEERS = [HERE / "peers" / f"{name}.py" for name in ("openai_agents", "pydantic_ai_agent", "langgraph_agent")]
FIGURES = ("early_ms", "late_ms", "total_s", "cpu_s", "rss_mb", "disk_kb", "import_s")


def peers_python(given: str | None) -> str:
    """The interpreter that has the harnesses; made where there is none yet."""
    if given:
        return given
    folder = HERE / ".peers"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("making the environment of the other harnesses …", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "-q", "install", "-r", str(HERE / "peers" / "requirements.txt")]
        subprocess.run(install, check=True)
        (folder / "ready").touch()
    return str(python)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def measure(python: str, script: Path, turns: int) -> dict:
    """One contestant against a server of its own."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, str(HERE / "fake_model.py"), str(port), str(turns)], stdout=subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        server.stdout.readline()
        with tempfile.TemporaryDirectory() as folder:
            command = [python, "-W", "ignore", str(script), str(port), str(Path(folder) / "store.db")]
            done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, timeout=900, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{script.name} failed:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout.strip().splitlines()[-1])
    finally:
        server.kill()
        server.wait()


def compare(contestants: list[tuple[str, Path]], turns: int, rounds: int) -> list[dict]:
    """Medians of `rounds` rounds, every contestant once in each."""
    runs: dict[Path, list[dict]] = {}
    for round_number in range(rounds):
        for python, script in contestants:
            print(f"\r{turns} turns, round {round_number + 1}: {script.stem:<24}", end="", file=sys.stderr)
            runs.setdefault(script, []).append(measure(python, script, turns))
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return [
        {"name": found[0]["name"]} | {f: statistics.median(r[f] for r in found) for f in FIGURES}
        for found in runs.values()
    ]


def table(rows: list[dict], turns: int, rounds: int) -> None:
    print(f"\n{turns} turns, streaming, one session; medians of {rounds} rounds")
    print(f"{'':34}" + "".join(f"{f:>10}" for f in FIGURES) + f"{'late/floor':>12}")
    floor = rows[0]["late_ms"]
    for row in rows:
        print(f"{row['name']:34}" + "".join(f"{row[f]:>10.4g}" for f in FIGURES) + f"{row['late_ms'] / floor:>12.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--long", type=int, default=2000, help="turns of the second table; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--peers-python", help="an interpreter that has the other harnesses")
    args = parser.parse_args()
    ours = [(sys.executable, HERE / "floor.py"), (sys.executable, HERE / "product.py")]
    others = [] if args.no_peers else [(peers_python(args.peers_python), script) for script in PEERS]
    table(compare(ours + others, args.turns, args.rounds), args.turns, args.rounds)
    if args.long:
        table(compare(ours, args.long, args.rounds), args.long, args.rounds)


main()
