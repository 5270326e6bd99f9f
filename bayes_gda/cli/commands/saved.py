"""What was made before, looked at again: `check`."""

from typing import Annotated

import typer

from bayes_gda.cli import options as o
from bayes_gda.cli import outputs
from bayes_gda.cli.commands.app import app
from bayes_gda.cli.shell import NO


@app.command()
def check(
    model: Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help="A file that `fit` wrote.")],
    strict: Annotated[bool, typer.Option("--strict", help="Let amber fail too.")] = False,
    json: o.Json = False,
) -> None:
    """Say whether a saved model is to be believed; exit code 1 if not (red), for use in CI."""
    from bayes_gda.cli.actions import fits
    from bayes_gda.store import load

    estimator = load(model)
    if json:
        outputs.write_json(fits.summary(estimator))
    else:
        fits.show_fit(estimator)
    if estimator.trust_.light == "red" or (strict and estimator.trust_.light == "amber"):
        raise typer.Exit(NO)
