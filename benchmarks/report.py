"""What each contestant prints: times of early and late turns, CPU, memory, bytes on disk, as one JSON line."""

import itertools
import json
import resource
import statistics
from pathlib import Path


def report(name: str, stamps: list[float], imported: float, path: str) -> None:
    """`stamps`: seconds at which each turn's tool ran. `path`: prefix of the files that were written."""
    gaps = [b - a for a, b in itertools.pairwise(stamps)]
    k = max(1, min(20, len(gaps) // 4))
    used = resource.getrusage(resource.RUSAGE_SELF)
    size = sum(f.stat().st_size for f in Path(path).parent.rglob("*") if f.is_file())
    print(
        json.dumps(
            {
                "name": name,
                "turns": len(stamps),
                "import_s": round(imported, 2),
                "early_ms": round(1000 * statistics.median(gaps[1 : k + 1]), 2),
                "late_ms": round(1000 * statistics.median(gaps[-k:]), 2),
                "total_s": round(stamps[-1] - stamps[0], 2),
                "cpu_s": round(used.ru_utime + used.ru_stime, 2),
                "rss_mb": used.ru_maxrss // 1024,
                "disk_kb": size // 1024,
            }
        )
    )
