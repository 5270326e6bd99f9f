"""The command line, `bayes-gda`: parse arguments, call, print.

    commands    the commands with their options: what `--help` shows
    shell       errors as one line, exit codes, Ctrl-C, closed pipes
    inputs      tables, examples and cost matrices
    outputs     files written whole or not at all; CSV, JSON, tables for people, progress
    fits, scores, rows    what the commands do

Nothing here imports NumPy before a command runs, so that `--help` is there at once.
"""

from bayes_gda.cli.commands import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; the entry point `bayes-gda`."""
    app(prog_name="bayes-gda")
