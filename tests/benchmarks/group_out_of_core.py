"""Tables larger than memory: `test_out_of_core`, run by pytest in a process of its own, and its reports as rows."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.record import Row, Session, Target

TITLE = "Tables larger than memory"
READING = (
    "Rows of ten features in a folder of Parquet files are fitted in fresh processes, batch by batch. The figure is "
    "what the row says it is, and the measurements behind it stand beside it; no other package is compared."
)
FILE = Path(__file__).with_name("test_out_of_core.py")
QUICK_ROWS = 200_000


def run(session: Session) -> None:
    """Run the file's benchmarks and take over what they reported."""
    environment = os.environ | ({"BENCH_ROWS": str(QUICK_ROWS)} if session.quick else {})
    session.settings |= {"rows": environment.get("BENCH_ROWS", "as the file says"), "file": FILE.name}
    with tempfile.TemporaryDirectory() as place:
        written = Path(place) / "benchmarks.json"
        words = ["-q", "-s", "--override-ini", "addopts=", "--import-mode=importlib", f"--benchmark-json={written}"]
        done = subprocess.run([sys.executable, "-m", "pytest", str(FILE), *words], env=environment, check=False)
        if not written.exists() or not written.stat().st_size:
            raise RuntimeError(f"{FILE.name} wrote no results; pytest ended with code {done.returncode}.")
        told = json.loads(written.read_text(encoding="utf-8"))
    for benchmark in told["benchmarks"]:
        for report in benchmark["extra_info"].get("reports", []):
            session.add(_row(report))
    if done.returncode:
        session.skip(f"some benchmarks of {FILE.name} failed")


def _row(report: dict[str, Any]) -> Row:
    """One report of `timing.report`: a bounded figure, and the measurements behind it as a note."""
    figures = ", ".join(f"{name} {value:.4g} {report['unit']}".rstrip() for name, value in report["figures"].items())
    target = Target(report["target"], of="ours", at_least=report["at_least"])
    names = {"ours_name": "fit from files", "theirs_name": "–"}
    return Row(report["what"], report["ratio"], None, **names, unit="", rival=False, target=target, note=figures)
