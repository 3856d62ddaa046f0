"""`counterfoil serve` as a real process: started on a free port or a given one, killed, started again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Server:
    """One server process over the folder `home`: its sessions, its workspace `w`, its script. Ready when made."""

    def __init__(self, home: Path, script: dict[str, Any], *more: str, port: int = 0, grpc_port: int = 0) -> None:
        self.home = home
        (home / "w").mkdir(exist_ok=True)
        (home / "script.json").write_text(json.dumps(script))
        env = {k: v for k, v in os.environ.items() if not k.startswith("COUNTERFOIL_")}
        arguments = ["--provider", "scripted", "--model", "m", "--script", str(home / "script.json")]
        arguments += ["--port", str(port), "--grpc-port", str(grpc_port)]
        arguments += ["--state-dir", str(home / "state"), "--workspace", str(home / "w"), *more]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "counterfoil", "serve", *arguments],
            env=env | {"PYTHONPATH": str(ROOT / "src"), "HOME": str(home), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.strip())
            if line.startswith("who may come in"):
                break
        assert self.process.poll() is None, self.said
        self.url = self._found(r"HTTP on (\S+)")
        self.grpc = self._found(r"gRPC on (\S+)") if grpc_port >= 0 else ""

    def _found(self, pattern: str) -> str:
        return next(found[1] for line in self.said if (found := re.match(pattern, line)))

    @property
    def port(self) -> int:
        """The port of HTTP."""
        return int(self.url.rsplit(":", 1)[1])

    def end(self, number: int = signal.SIGKILL) -> int:
        """Send a signal and wait; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=30)
        self.said += out.splitlines()
        return self.process.returncode
