"""The gallery: a report on each of the examples that the textbooks use, and a page that leads to them.

`python -m bayes_gda.reporting.gallery FOLDER`, or `make gallery`, writes it.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bayes_gda.data.examples import describe_example, load_example
from bayes_gda.reporting.page.rendering import render_gallery
from bayes_gda.reporting.report import NUMBERS, PAGE, ReportSettings, write_report

# Some two megabytes each; the textbook's other examples are on its own page.
EXAMPLES = ("qda-mixture", "iris", "pima", "breast-cancer")


def write_gallery(folder: Path, examples: Sequence[str] = EXAMPLES, *, quick: bool = False) -> Path:
    """Write a report on every example into a folder of its own, then the index page; return that page.

    Parameters
    ----------
    folder
        Where to; reports of other names that are there stay.
    examples
        Names as in `bayes_gda.load_example`.
    quick
        Whether to leave MCMC out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in examples:
        settings = ReportSettings(data_name=f"example:{name}", quick=quick)
        write_report(load_example(name), folder / name, settings=settings, title=name)
    return write_index(folder, examples)


def write_index(folder: Path, examples: Sequence[str] = EXAMPLES) -> Path:
    """Write the page that lists the reports, from their own numbers."""
    entries = []
    for name in examples:
        numbers = json.loads((folder / name / NUMBERS).read_text(encoding="utf-8"))
        entries.append(
            {
                "name": name,
                "page": f"{name}/{PAGE}",
                "description": describe_example(name),
                "conclusions": numbers["conclusions"],
            }
        )
    page = folder / PAGE
    draft = page.with_suffix(".tmp")
    draft.write_text(render_gallery(entries), encoding="utf-8")
    draft.replace(page)
    return page


if __name__ == "__main__":
    write_gallery(Path(sys.argv[1]), sys.argv[2:] or EXAMPLES)
