"""The report: one page that can be handed on, with its numbers, figures and posteriors beside it.

    out/index.html      all there is to read, in one file that asks for nothing from the network
        report.md       the same as Markdown, for a repository, or for pandoc to make a .docx of
        report.json     every number of it
        figures/*.svg
        posterior/*.nc  draws of each model, for ArviZ

It is built beside `out` and put in its place when it is whole: a failure leaves the old report as it was.
"""

import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayes_gda.data.table import Dataset
from bayes_gda.data.validate import check_size
from bayes_gda.errors import StoreError, attempt
from bayes_gda.linalg import one_blas_thread
from bayes_gda.processes.chains import Start, preferred_start, run_chains
from bayes_gda.reporting.analysis.analysis import Analysis, analyse
from bayes_gda.reporting.analysis.conclusions import conclude
from bayes_gda.reporting.analysis.settings import ReportSettings
from bayes_gda.reporting.analysis.words import Conclusion
from bayes_gda.reporting.page.content import content
from bayes_gda.reporting.page.markdown import to_markdown
from bayes_gda.reporting.page.rendering import render
from bayes_gda.reporting.page.replacing import replaced

__all__ = ["Report", "ReportSettings", "write_report"]

PAGE, NUMBERS, TEXT = "index.html", "report.json", "report.md"
# Figures are dealt to so many processes, if there are cores: two drew twenty of them in half of the time.
PARTS = 2


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Report:
    """A report that was written.

    Parameters
    ----------
    folder
        Where it is.
    conclusions
        What it concludes.
    numbers
        All values, as in report.json.
    analysis
        Everything behind it: fitted models, posteriors, comparisons.
    """

    folder: Path
    conclusions: tuple[Conclusion, ...]
    numbers: dict[str, Any]
    analysis: Analysis

    def __repr__(self) -> str:
        """Return where it is and what it says, in one line; the analysis would fill pages."""
        chosen = self.numbers["chosen"]["name"]
        return f"Report({str(self.folder)!r}, light={self.light!r}, chosen={chosen!r})"

    @property
    def page(self) -> Path:
        """The page to open: HTML if it was written, else Markdown."""
        return self.folder / (PAGE if (self.folder / PAGE).exists() else TEXT)

    @property
    def light(self) -> str:
        """The worst light: green, amber or red."""
        return max((c.light for c in self.conclusions), key=("green", "amber", "red").index)


def write_report(
    data: Dataset,
    out: "str | os.PathLike[str]",
    *,
    settings: ReportSettings | None = None,
    title: str | None = None,
    test: Dataset | None = None,
) -> Report:
    """Fit all models that apply, hold them against each other, and write the report.

    Parameters
    ----------
    data
        Rows; some are held out unless `test` is given.
    out
        Folder for the report; an older report there is replaced when the new one is whole.
    settings
        Which models, how much to compute; None for all models with MCMC.
    title
        Of the page; None for the names of the data and of the class column.
    test
        Held-out rows of your own.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from bayes_gda import load_example, write_report
    >>> from bayes_gda.reporting.report import ReportSettings
    >>> settings = ReportSettings(quick=True, models=["lda"])
    >>> with TemporaryDirectory() as folder:
    ...     report = write_report(load_example("lda-mixture"), folder + "/report", settings=settings)
    ...     print(type(report).__name__)
    Report
    """
    settings = ReportSettings() if settings is None else settings
    folder = Path(out)
    check_folder(folder)
    for part in (data, test):
        if part is not None:
            check_size(part.X, part.feature_names)
    with one_blas_thread():  # many small products, which threads only slow down
        analysis = analyse(data, settings, test=test)
    clock = analysis.clock
    conclusions = conclude(analysis)
    numbers = content(analysis, conclusions, title or settings.title)
    with replaced(folder) as new:
        with clock.stage("draw figures"):
            images = _draw(analysis, numbers, new / "figures")
        with clock.stage("write"):
            _write_posteriors(analysis, new / "posterior")
        total = sum(clock.seconds.values())
        numbers["reproduce"]["timings"] = [
            {"stage": stage, "seconds": seconds, "share": seconds / total} for stage, seconds in clock.seconds.items()
        ] + [{"stage": "altogether", "seconds": total, "share": 1.0}]
        text = json.dumps(numbers, ensure_ascii=False, indent=1, allow_nan=False)
        (new / NUMBERS).write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
        page = render(numbers, images)
        for file, made, form in ((PAGE, page, "html"), (TEXT, to_markdown(page), "md")):
            if form in settings.formats:
                (new / file).write_text(made, encoding="utf-8", errors="xmlcharrefreplace")
    settings.progress("done", 1.0)
    return Report(folder, conclusions, numbers, analysis)


def _draw(analysis: Analysis, numbers: dict[str, Any], folder: Path) -> dict[str, bytes]:
    """Draw and save the figures, add their words to the values, and return the files by name."""
    from bayes_gda.reporting.page.figures import figures
    from bayes_gda.reporting.plots import save

    folder.mkdir()
    planned = list(figures(analysis))

    def draw(part: int, report: Callable[[int, int], None]) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        for figure in planned[part::PARTS]:
            words = {"name": figure.name, "section": figure.section, "title": figure.title}
            plot, failure = attempt(figure.draw)
            if plot is None:
                lines.append(words | {"reason": failure})
                continue
            save(plot, folder / f"{figure.name}.svg")
            width, height = plot.figure.get_size_inches()
            # In CSS pixels: the browser keeps the room free before the image is there.
            size = {"width": round(96 * float(width)), "height": round(96 * float(height))}
            lines.append(words | {"caption": plot.caption, "alt": plot.alt} | size)
        report(1, 0)
        return lines

    # A new interpreter would import for longer than the figures take to draw.
    start: Start = "fork" if preferred_start() == "fork" else "here"
    # Matplotlib draws in one thread, and BLAS is held to one: a fork is safe.
    with one_blas_thread():
        parts = run_chains(draw, PARTS, iterations=1, start=start)
    drawn = {line["name"]: line for lines in parts for line in lines}
    lines = [drawn[figure.name] for figure in planned]
    numbers["figures"] = [line for line in lines if "reason" not in line]
    numbers["figures_left_out"] = [line for line in lines if "reason" in line]
    return {line["name"]: (folder / f"{line['name']}.svg").read_bytes() for line in numbers["figures"]}


def _write_posteriors(analysis: Analysis, folder: Path) -> None:
    """Write the draws behind each model's predictions, and those of the sampler if there are any."""
    import xarray as xr

    folder.mkdir()
    for name, model in analysis.models.items():
        sampled = model.fitted.tree is not None
        # Exact draws can be had again at any time; beside those of the sampler they would only take room.
        methods = [model.method] if not sampled or model.method != "exact" else []
        for method in dict.fromkeys([*methods, *(["mcmc"] if sampled else [])]):
            source = model.trees[method]
            kept = ("posterior", "sample_stats", "log_prior")
            tree = xr.DataTree.from_dict({g: source[g].to_dataset() for g in kept if g in source.children})
            tree.attrs = {"model": name, "method": method, "fingerprint": analysis.train.fingerprint}
            packed = {
                group: {str(v): {"zlib": True, "shuffle": True} for v in node.to_dataset().data_vars}
                for group, node in tree.children.items()
            }
            # To memory first: HDF5 can neither finish nor close a file once the disk is full.
            memory = io.BytesIO()
            tree.to_netcdf(memory, engine="h5netcdf", encoding={f"/{g}": e for g, e in packed.items()})
            (folder / f"{name}-{method}.nc").write_bytes(memory.getvalue())


# ── All or nothing ──────────────────────────────────────────────────────────────────────────────────────────────────


def check_folder(folder: Path) -> None:
    """Raise unless a report may be written here: nothing there, an empty folder, or an older report."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise StoreError(f"`out` must be a folder; {str(folder)!r} is a file. Choose another name.")
    if any(folder.iterdir()) and not (folder / NUMBERS).exists():
        raise StoreError(f"`out` must be empty or hold an older report; {str(folder)!r} holds other files.")
