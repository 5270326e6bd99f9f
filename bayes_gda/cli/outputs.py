"""What goes out: files written whole or not at all; JSON for programs, tables and sentences for people.

Results go to stdout; what is said on the way (progress, "Wrote …") goes to stderr, and progress only to a terminal.
"""

import json
import math
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

from bayes_gda.cli.shell import QUIET, VERBOSE, check_interrupted, clean, loudness, say
from bayes_gda.errors import DataError, StoreError

STDOUT = "-"
# Where a verdict of each colour stands in rich's names; bright enough on both white and black.
COLORS = {"green": "green", "amber": "yellow", "red": "red"}
# Below this a terminal is too narrow for our tables, and in a pipe there is no width: both get a page's.
PAGE = 80

# Characters of a name that a table does not cut: the longest of our own are shorter.
WORD = 16
# Characters between two columns.
GAP = 3

# Share of the work that must be done before the time left is told.
FORESEEN = 0.05

# Characters written at once: a pipe's usual buffer.
PIECE = 65_536

# (what is being done, share of the whole that is done)
Advance = Callable[[str, float], None]


# ── Files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_file(out: str | None, *, inputs: Sequence[str] = (), stdout: bool = True, option: str = "-o") -> None:
    """Raise if a file cannot be written, before the work and not after it.

    Parameters
    ----------
    out
        Path of a file; `-` and None are stdout.
    inputs
        Paths that the command reads, which it shall not replace.
    stdout
        Whether stdout will do.
    option
        The option that names it.
    """
    if out is None or out == STDOUT:
        if not stdout:
            what = "a model" if option == "-o" else "that"
            raise DataError(f"`{option}` must name a file; {what} cannot be written to stdout.")
        return
    path = _path(out, option)
    if path.is_dir():
        raise DataError(f"`{option}` must name a file; {out!r} is a folder. Give a name inside it.")
    if path.exists() and not path.is_file() and not stdout:
        raise DataError(f"`{option}` must name a file; {out!r} is a device.")
    for name in inputs:
        if path.exists() and os.path.exists(name) and os.path.samefile(path, name):
            raise DataError(f"`{option}` would replace the input {name!r}. Give another name.")
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
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file atomically: until the last step an old one stands untouched."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # /dev/null, a pipe: there is nothing to replace
        target.write_bytes(content)
        return
    draft = target.parent / f".{secrets.token_hex(8)}.tmp"  # beside the target: a rename must not cross disks
    try:
        with open(draft, "xb") as file:
            file.write(content)
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


def write_json(value: Any) -> None:
    """Print a value as JSON; what is not a finite number is null."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print_text(json.dumps(plain(value), indent=2, ensure_ascii=not unicode, allow_nan=False) + "\n")


def print_text(text: str) -> None:
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
    console = _console()
    # A number that is cut is another number: where there is no room the terminal breaks the lines.
    widths = [max(len(clean(cell)) for cell in column) for column in zip(head, *lines, strict=True)]
    least = sum(min(WORD, width) if j < left else width for j, width in enumerate(widths)) + GAP * (len(head) - 1)
    console.width = max(console.width, least)
    console.print(table, "")


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
def progress(title: str, *, silent: bool = False) -> Iterator[Advance]:
    """Show how far a command is on stderr: a bar with the time left if that is a terminal, lines if `--verbose`.

    Ctrl-C is heard at every step of it.

    Parameters
    ----------
    title
        What the command does.
    silent
        Whether to show nothing, as where a sampler has bars of its own.
    """
    begun = time.monotonic()

    def listen(stage: str, share: float) -> None:
        if share < 1:  # at the end it is too late: the work is done
            check_interrupted()

    def tell(stage: str, share: float) -> None:
        listen(stage, share)
        say(f"{title}: {stage} ({share:.0%}, {time.monotonic() - begun:.1f} s)")

    if silent or loudness() == QUIET or not (loudness() == VERBOSE or sys.stderr.isatty()):
        yield listen
    elif loudness() == VERBOSE:
        yield tell
    else:
        with _bar(title, listen) as advance:
            yield advance


@contextmanager
def _bar(title: str, listen: Advance) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text

    # Narrow enough for 80 columns beside the longest stage.
    columns = (TextColumn("{task.description}"), BarColumn(16), TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
    bar = Progress(*columns, console=Console(stderr=True, emoji=False), transient=True)
    with bar:
        task = bar.add_task(Text(clean(title)).markup, total=1.0, left="")

        def advance(stage: str, share: float) -> None:
            listen(stage, share)
            left = time_left(bar.tasks[0].elapsed or 0.0, share)
            bar.update(task, description=Text(clean(f"{title}: {stage}")).markup, completed=share, left=left)

        yield advance


def time_left(elapsed: float, share: float) -> str:
    """Return how long the rest will take if it goes on as before, in words; nothing as long as that is a guess."""
    if share < FORESEEN:
        return ""
    seconds = elapsed * (1 - share) / share
    return f"{seconds:.0f} s left" if seconds < 100 else f"{seconds / 60:.0f} min left"


def sampler_bars() -> bool:
    """Return whether samplers shall show their bars, and send those to stderr."""
    import rich

    rich.reconfigure(stderr=True)
    return sys.stderr.isatty() and loudness() > QUIET
