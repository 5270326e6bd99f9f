"""What goes out: files written whole or not at all; CSV and JSON for programs, tables and sentences for people.

Results go to stdout; what is said on the way (progress, "Wrote …") goes to stderr, and progress only to a terminal.
"""

import json
import math
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bayes_gda.cli.shell import check_interrupted, clean, say
from bayes_gda.errors import DataError, StoreError

if TYPE_CHECKING:
    import pandas as pd

STDOUT = "-"
# Where a verdict of each colour stands in rich's names; bright enough on both white and black.
COLORS = {"green": "green", "amber": "yellow", "red": "red"}
# Below this a terminal is too narrow for our tables, and in a pipe there is no width: both get a page's.
PAGE = 80

# Characters of a name that a table does not cut: the longest of our own are shorter.
WORD = 16

# Characters written at once: a pipe's usual buffer.
PIECE = 65_536

# (what is being done, share of the whole that is done)
Advance = Callable[[str, float], None]


# ── Files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_file(out: str | None, *, inputs: Sequence[str] = (), stdout: bool = True) -> None:
    """Raise if a file cannot be written, before the work and not after it.

    Parameters
    ----------
    out
        Path of a file; `-` and None are stdout.
    inputs
        Paths that the command reads, which it shall not replace.
    stdout
        Whether stdout will do.
    """
    if out is None or out == STDOUT:
        if not stdout:
            raise DataError("`-o` must name a file; a model cannot be written to stdout.")
        return
    path = _path(out, "-o")
    if path.is_dir():
        raise DataError(f"`-o` must name a file; {out!r} is a folder. Give a name inside it.")
    if path.exists() and not path.is_file() and not stdout:
        raise DataError(f"`-o` must name a file; {out!r} is a device.")
    for name in inputs:
        if path.exists() and os.path.exists(name) and os.path.samefile(path, name):
            raise DataError(f"`-o` would replace the input {name!r}. Give another name.")
    _check_folder(path.parent, out)


def check_report_folder(out: str | None, data: str = "", cost: str | None = None) -> Path:
    """Return the folder of a report; one that holds other things is an error, as a report replaces its folder.

    Parameters
    ----------
    out
        The folder; None for one that is named after the data.
    data, cost
        What the report is made from, which it shall not replace.
    """
    if out is None:
        name = data.removeprefix("example:") if data.startswith("example:") else Path(data).name.split(".")[0]
        out = str(Path("reports") / (name or "report"))
    path = _path(out, "--out")
    for name in [data, *([] if cost is None else [cost])]:
        if os.path.exists(name) and Path(os.path.realpath(name)).is_relative_to(os.path.realpath(path)):
            raise DataError(f"`--out` would replace the input {name!r}, which stands in that folder. Give another.")
    if path.exists() and not path.is_dir():
        raise DataError(f"`--out` must name a folder; {out!r} is a file. Give another name.")
    if path.is_dir() and any(path.iterdir()) and not (path / "report.json").is_file():
        raise DataError(f"`--out` must name a new folder or that of an earlier report; {out!r} holds other files.")
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    _check_folder(parent, out)
    return path


def write_text(path: str | Path, text: str) -> None:
    """Write a file in UTF-8, atomically: until the last step an old one stands untouched."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # /dev/null, a pipe: there is nothing to replace
        target.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
        return
    draft = target.parent / f".{secrets.token_hex(8)}.tmp"  # beside the target: a rename must not cross disks
    try:
        with open(draft, "x", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, draft)
        check_interrupted()
        os.replace(draft, target)
    except OSError as error:
        raise StoreError(
            f"Cannot write {str(path)!r}: {error.strerror or error}. "
            "Nothing was changed; free some space or choose another path."
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _path(name: str, option: str) -> Path:
    if not name or "\0" in name:
        raise DataError(f"`{option}` must be a path; got {name!r}.")
    return Path(name)


def _check_folder(folder: Path, out: str) -> None:
    if not folder.is_dir():
        raise DataError(f"Cannot write {out!r}: there is no folder {str(folder)!r}. Make it first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataError(f"Cannot write {out!r}: no permission to write in {str(folder)!r}. Choose another folder.")


# ── For programs ────────────────────────────────────────────────────────────────────────────────────────────────────


def write_rows(
    table: "pd.DataFrame", out: str | None, summary: Mapping[str, Any] | None, noun: str, *, formulas: bool = False
) -> None:
    """Write rows as CSV to a file or to stdout; with a summary, print that as JSON, and the rows in it if no file.

    Parameters
    ----------
    table
        The rows; its index is left out.
    out
        Path of a file; `-` and None are stdout.
    summary
        What `--json` prints; None without that option.
    noun
        What the rows are, for the person.
    formulas
        Whether text that a spreadsheet would take for a formula stays as it is.
    """
    csv = table if formulas else without_formulas(table)
    to_file = out is not None and out != STDOUT
    if to_file:
        write_text(str(out), csv.to_csv(index=False, lineterminator="\n"))
        say(f"Wrote {out}: {len(table)} {noun}.")
    if summary is not None:
        rows = {} if to_file else {"rows": table.to_dict(orient="records")}
        write_json({**summary, "out": out if to_file else None, **rows})
    elif not to_file:
        _print(csv.to_csv(index=False, lineterminator="\n"))


def without_formulas(table: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table in which no text is a formula to a spreadsheet: an apostrophe stands before such a one.

    Names of classes and columns come with the data, perhaps from a stranger; `=HYPERLINK(…)` would be run on opening.
    """
    out = table.copy()
    for j in range(table.shape[1]):
        column = table.iloc[:, j]
        if column.dtype.kind not in "biufc":
            out.isetitem(j, [_harmless(cell) for cell in column.tolist()])
    out.columns = [_harmless(name) for name in table.columns]
    return out


def _harmless(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        float(cell)  # the class "-1" is a number to a spreadsheet, and does nothing
    except ValueError:
        return f"'{cell}"
    return cell


def write_json(value: Any) -> None:
    """Print a value as JSON; what is not a finite number is null."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    _print(json.dumps(plain(value), indent=2, ensure_ascii=not unicode, allow_nan=False) + "\n")


def _print(text: str) -> None:
    """Write to stdout piece by piece: of one large piece Python would not say that the reader went away."""
    if sys.stdout.isatty():  # a name may hold what a terminal takes for a command
        text = "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)
    for start in range(0, len(text), PIECE):
        typer.echo(text[start : start + PIECE], nl=False)


def plain(value: Any) -> Any:
    """Return a value as JSON has it: tables as lists of rows by name, arrays as lists, nan and inf as None."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a data frame, whose index holds the names
        named = value.rename_axis("name") if value.index.name is None else value
        return [plain(row) for row in named.reset_index().to_dict(orient="records")]
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


# ── For people ──────────────────────────────────────────────────────────────────────────────────────────────────────


def show_table(title: str, head: Sequence[str], lines: Sequence[Sequence[Any]], *, left: int = 1) -> None:
    """Print a table, its first `left` columns to the left and the others, numbers, to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(clean(title)) if title else None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )
    for j, name in enumerate(head):
        # A column of words keeps its longest one whole, up to a name's usual length; a longer one is folded.
        least = min(WORD, max([len(clean(line[j])) for line in lines], default=0)) if j < left else None
        table.add_column(
            Text(clean(name)),
            justify="left" if j < left else "right",
            overflow="fold",
            min_width=least,
            no_wrap=j >= left,
        )
    for line in lines:
        table.add_row(*[Text(clean(cell)) for cell in line])
    _console().print(table, "")


def show_facts(facts: Mapping[str, str]) -> None:
    """Print named values, one a line."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    for name, value in facts.items():
        table.add_row(Text(clean(f"  {name}")), Text(clean(value)))
    _console().print(table)


def show_verdict(light: str, word: str, sentence: str) -> None:
    """Print a verdict with its traffic light; in a pipe, which has no colour, one that is not green is named."""
    from rich.text import Text

    console = _console()
    colon = "" if word.endswith("?") else ":"
    mark = "● " if console.is_terminal else "" if light == "green" else f"[{light}] "
    console.print(Text.assemble((mark, COLORS[light]), (clean(word), "bold"), f"{colon} {clean(sentence)}"))


def show(*sentences: str) -> None:
    """Print sentences, each as a paragraph."""
    from rich.text import Text

    for sentence in sentences:
        _console().print(Text(clean(sentence)))


def number(value: float | None, digits: int = 3) -> str:
    """Return a number for a person, or a dash for none."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def _console() -> Any:
    from rich.console import Console

    width = None if sys.stdout.isatty() and shutil.get_terminal_size().columns >= PAGE else PAGE
    return Console(width=width, highlight=False, markup=False, emoji=False)


@contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[Advance]:
    """Show a bar with the time left on stderr, if that is a terminal; Ctrl-C is heard at every step of it.

    Parameters
    ----------
    title
        What the command does.
    quiet
        Whether to show nothing, as where a sampler has bars of its own.
    """

    def listen(stage: str, share: float) -> None:
        if share < 1:  # at the end it is too late: the work is done
            check_interrupted()

    if quiet or not sys.stderr.isatty():
        yield listen
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("left:"))
    bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True, emoji=False), transient=True)
    with bar:
        task = bar.add_task(Text(clean(title)).markup, total=1.0)

        def advance(stage: str, share: float) -> None:
            listen(stage, share)
            bar.update(task, description=Text(clean(f"{title}: {stage}")).markup, completed=share)

        yield advance


def sampler_bars() -> bool:
    """Return whether samplers shall show their bars, and send those to stderr."""
    import rich

    rich.reconfigure(stderr=True)
    return sys.stderr.isatty()
