"""The report from the command line: write it, and say what it concludes."""

from pathlib import Path
from typing import Any

from bayes_gda.cli.outputs import show, show_verdict
from bayes_gda.data.table import Dataset
from bayes_gda.reporting.report import Report, ReportSettings, write_report


def write(data: Dataset, folder: Path, settings: dict[str, Any], test: Dataset | None = None) -> Report:
    """Write the report on a data set; `settings` are those of `ReportSettings`."""
    return write_report(data, folder, settings=ReportSettings(**settings), test=test)


def as_json(report: Report) -> dict[str, Any]:
    """Return what a report concludes, for JSON; all its numbers are in its own report.json."""
    lines = [
        {"topic": c.topic, "light": c.light, "sentence": c.sentence, "step": c.step, "call": c.call}
        for c in report.conclusions
    ]
    return {"out": str(report.folder), "page": str(report.page), "light": report.light, "conclusions": lines}


def show_report(report: Report) -> None:
    """Print the conclusions, and the page to open."""
    for c in report.conclusions:
        show_verdict(c.light, c.topic, f"{c.sentence} {c.step}")
        if c.call:
            show(f"  {c.call}")
        show("")
    show(f"Open {report.page}")
