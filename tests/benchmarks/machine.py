"""Where it was measured: the machine, the versions, the commit."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "bayes-gda", "numpy", "scipy", "scikit-learn", "pandas", "pymc", "pytensor", "numba", "arviz", "nutpie", "numpyro",
    "jax", "bambi",
)  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]


def place() -> dict[str, Any]:
    """Return machine, versions, commit, and the load that others put on the machine at this moment."""
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    return {"machine": _machine(), "versions": _versions(), "commit": _commit(), "load_before": load}


def _machine() -> dict[str, Any]:
    import psutil

    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", "bayes_gda", "models")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (", with changes" if changed else "")
