"""The application: what the commands are hung on, and the options before them."""

from typing import Annotated

import typer

from bayes_gda._version import __version__
from bayes_gda.cli.shell import Shell

app = typer.Typer(
    name="bayes-gda",
    cls=Shell,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"bayes-gda {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Bayesian classifiers that tell you whether to believe them.

    Exit codes: 0 done, 1 something is red, 2 wrong input, 130 interrupted.
    """
