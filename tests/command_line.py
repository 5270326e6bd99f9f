"""The command line in this process: run a command, and hold it to its promises."""

import json

import rich
from typer.testing import CliRunner

from bayes_gda.cli.commands import app

CHARSET = "utf-8"


def run(*args, code=0, stdin=None):
    """Run a command that shall leave with `code`; what went wrong is one line, and no traceback."""
    try:
        result = CliRunner(charset=CHARSET).invoke(app, [str(a) for a in args], input=stdin, prog_name="bayes-gda")
    finally:
        rich.reconfigure()  # a command that samples sends rich's bars to stderr, for as long as its process lives
    assert result.exit_code == code, (result.exit_code, result.stdout, result.stderr, result.exception)
    assert "Traceback" not in result.stdout + result.stderr
    if code in (2, 70):
        errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
        assert len(errors) == 1
        assert result.stderr.splitlines()[-1] == errors[0]
        assert not result.stdout
    return result


def run_json(*args, code=0):
    """Run a command with --json and return what it printed, of which no number may be nan."""

    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(run(*args, "--json", code=code).stdout, parse_constant=refuse)
