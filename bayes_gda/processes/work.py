"""What a chain is: a piece of work that reports after every iteration, and how its progress is shown."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from bayes_gda.errors import BayesGDAError

# Seconds between two looks at the chains: smooth to the eye, and nothing to the processor.
POLL = 0.1


class Report(Protocol):
    """What a chain says after every iteration."""

    def __call__(self, iteration: int, divergences: int) -> None:
        """Note the progress; raises KeyboardInterrupt if the run is to stop."""


Work = Callable[[int, Report], Any]


class ChainError(BayesGDAError):
    """A chain ended without a result."""


def outcome(work: Work, chain: int, report: Report) -> Any:
    """Return what a chain brought; an error is its result, too, for the parent to raise."""
    try:
        return work(chain, report)
    except BaseException as error:
        return error


@contextmanager
def progress_bars(
    chains: int, iterations: int, shown: bool, *, names: Sequence[str] = ()
) -> Iterator[Callable[[int, int, int], None]]:
    """Show a bar for each chain, or for what `names` say, with its draws, divergences and the time left."""
    if not shown:
        yield lambda chain, iteration, divergences: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[divergences]} divergences"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, refresh_per_second=1 / POLL) as progress:
        labels = names or [f"Chain {i + 1}" for i in range(chains)]
        tasks = [progress.add_task(label, total=iterations, divergences=0) for label in labels]
        yield lambda chain, iteration, divergences: progress.update(
            tasks[chain], completed=iteration, divergences=divergences
        )
