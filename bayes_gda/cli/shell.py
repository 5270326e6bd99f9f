"""What every command has in common: one line for what went wrong, an exit code, and nothing half done.

0      done
1      done, and the answer is no: `check` and `--strict` found something red
2      wrong input; the line says what and how to mend it
70     a mistake of ours; BAYES_GDA_DEBUG=1 shows where
130    Ctrl-C
141    the reader of our output went away
143    terminated (SIGTERM); 129 if the terminal went away (SIGHUP)
"""

import errno
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from bayes_gda.errors import BayesGDAError, DataWarning, InferenceWarning, one_line
from bayes_gda.memory import require_addresses
from bayes_gda.processes.signals import exit_code

NO, WRONG, OURS, INTERRUPTED, CLOSED_PIPE = 1, 2, 70, 130, 141
_NO_MEMORY = re.compile(
    r"out of memory|cannot allocate memory|unable to allocate|failed to map segment|can't start new thread|bad_alloc",
    re.IGNORECASE,
)
REPORT_IT = "This is a mistake of bayes_gda; please report it. BAYES_GDA_DEBUG=1 shows where it happened."
_ARGUMENT = re.compile(r"\b(inference|sampler|draws|chains|encoding)=['\"]?([\w-]+)['\"]?")
_OPTION = re.compile(r"`(sep|decimal|prior_scale)`")
# A list of columns, with each name as Python writes it.
_COLUMNS = re.compile(r"\b(drop|categorical)=\[([^\]]*)\]")
_NAME = re.compile(r"'[^']*'|\"[^\"]*\"")
# The signal that asked for an end, such as Ctrl-C's. A sampler answers it by returning the draws it has; a command must
# not take those for all.
_stopped: int | None = None
# What a command tells beside its results: 0 warnings and errors only, 1 also what was written and how far it is, 2 also
# each stage as a line.
QUIET, USUAL, VERBOSE = 0, 1, 2
_loudness = USUAL
_WORDS: dict[int, str] = {int(signal.SIGINT): "Interrupted", int(signal.SIGTERM): "Terminated"}
if hasattr(signal, "SIGHUP"):  # not on Windows
    _WORDS[int(signal.SIGHUP)] = "The terminal went away"


class Shell(TyperGroup):
    """A group of commands that answers every error with one line on stderr."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command and leave with its exit code."""
        kwargs["standalone_mode"] = False  # Typer's own way to show errors takes several lines, or a frame
        _patient_streams()
        try:
            code = super().main(*args, **kwargs)
        except typer.Abort:
            code = INTERRUPTED
        except Exception as error:  # of the arguments, before a command was chosen
            code = _explain(error)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the arguments name."""
        set_loudness(USUAL)
        try:
            if not {"--help", "-h"} & {*ctx.args, *getattr(ctx, "_protected_args", ())}:
                require_addresses()
            with _warnings_in_one_line(), _noticing_interrupts():
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(_explain(error)) from None


def set_loudness(level: int) -> None:
    """Set what the command tells beside its results: QUIET, USUAL or VERBOSE."""
    global _loudness
    _loudness = level


def loudness() -> int:
    """Return what the command tells beside its results."""
    return _loudness


def check_interrupted() -> None:
    """Raise KeyboardInterrupt if a signal asked for an end, even where a library has swallowed it."""
    if _stopped is not None:
        raise KeyboardInterrupt


def clean(text: Any) -> str:
    """Return text that a terminal shows on one line and takes for nothing else: control characters are escaped."""
    return one_line(str(text))


def in_options(text: str) -> str:
    """Return advice that names arguments of Python, such as inference='mcmc', in the words of the command line."""
    text = _COLUMNS.sub(lambda match: " ".join(f"--{match[1]} {name}" for name in _NAME.findall(match[2])), text)
    text = _ARGUMENT.sub(r"--\1 \2", text)
    return _OPTION.sub(lambda match: f"`--{match[1].replace('_', '-')}`", text)


def say(text: str) -> None:
    """Write a line for the person at the terminal, to stderr."""
    with suppress(BrokenPipeError):
        typer.echo(clean(text), err=True)


def note(text: str) -> None:
    """Write a line that `--quiet` leaves out, to stderr."""
    if _loudness > QUIET:
        say(text)


def _explain(error: BaseException) -> int:
    """Say in one line what happened, and return the exit code."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        number = signal.SIGINT if _stopped is None else _stopped
        say(f"{_WORDS[number]}; nothing was written.")
        return exit_code(number)
    if isinstance(error, BrokenPipeError):
        # What Python still holds for stdout must not fail again at exit.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    if os.environ.get("BAYES_GDA_DEBUG"):
        raise error
    if type(error).__name__ == "NoArgsIsHelpError":
        return WRONG  # the help has been shown
    if hasattr(error, "format_message"):  # Typer's, whose classes have moved between its versions
        context = getattr(error, "ctx", None)
        remedy = f" See: {context.command_path} --help" if context is not None else ""
        message = _one_line(error.format_message()).replace(": Value error, ", ": ")  # newer ones say it twice
        say(f"Error: {message.rstrip('.')}.{remedy}")
        return WRONG
    if _out_of_memory(error):
        say("Error: There is not enough memory for this. Use fewer rows, columns or draws, or a larger machine.")
        return WRONG
    if isinstance(error, BayesGDAError):
        say(f"Error: {in_options(_one_line(error))}")
        return WRONG
    if isinstance(error, OSError):
        where = f" {os.fspath(error.filename)!r}" if error.filename is not None else ""
        full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        remedy = "Free some space, or write elsewhere" if full else "Check the path"
        say(f"Error: Cannot {'write' if full else 'use'}{where}: {_one_line(error.strerror or error)}. {remedy}.")
        return WRONG
    if isinstance(error, UnicodeError):
        say(f"Error: The text is not UTF-8: {_one_line(error)}. Save the file as UTF-8.")
        return WRONG
    say(f"Error: {type(error).__name__}: {_one_line(error)}. {REPORT_IT}")
    return OURS


def _out_of_memory(error: BaseException) -> bool:
    """Return whether memory was what an error is about; libraries say so in many ways, and wrap each other's."""
    seen: BaseException | None = error
    for _ in range(10):
        if seen is None:
            return False
        if isinstance(seen, BayesGDAError):  # which says what would take it, and what to do
            return False
        if isinstance(seen, MemoryError) or (isinstance(seen, OSError) and seen.errno == errno.ENOMEM):
            return True
        if _NO_MEMORY.search(str(seen)):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _one_line(message: Any) -> str:
    return " ".join(str(message).split()).rstrip(" ") or type(message).__name__


def _patient_streams() -> None:
    """Let no name of a column break a stream that cannot hold it."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    with warnings.catch_warnings():
        for category in (InferenceWarning, DataWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = lambda message, *_, **__: say(f"Warning: {in_options(_one_line(message))}")
        yield


@contextmanager
def _noticing_interrupts() -> Iterator[None]:
    """Remember a signal that asks for an end, and raise KeyboardInterrupt, as for Ctrl-C."""
    global _stopped
    _stopped = None

    def notice(number: int, frame: FrameType | None) -> None:
        global _stopped
        _stopped = number
        raise KeyboardInterrupt

    # Not in another thread, where no signal arrives, nor in a job that was started deaf to it (`nohup`, `&`).
    alone = threading.current_thread() is threading.main_thread()
    answers = {number: signal.getsignal(number) for number in _WORDS} if alone else {}
    before = {n: answer for n, answer in answers.items() if answer in (signal.default_int_handler, signal.SIG_DFL)}
    for number in before:
        signal.signal(number, notice)
    try:
        yield
    finally:
        for number, answer in before.items():
            signal.signal(number, answer)
