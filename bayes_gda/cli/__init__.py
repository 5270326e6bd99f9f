"""The command line, `bayes-gda`: parse arguments, call, print.

    commands    the commands with their options: what `--help` shows
    shell       errors as one line, exit codes, Ctrl-C, closed pipes
    inputs      tables, examples and cost matrices
    outputs     files written whole or not at all; JSON, tables for people, progress
    tabular     rows as CSV, Parquet, JSON lines and the like
    actions     what the commands do

Nothing here imports NumPy before a command runs, so that `--help` is there at once.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; the entry point `bayes-gda`."""
    try:
        from bayes_gda.cli.commands import app

        app(prog_name="bayes-gda")
    except KeyboardInterrupt:  # pressed before the commands were there to hear it, or twice
        sys.stderr.write("Interrupted; nothing was written.\n")
        sys.exit(130)
