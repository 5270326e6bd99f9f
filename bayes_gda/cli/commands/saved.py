"""What was made before, looked at again: `check`, `effects`, `diff`. Heavy imports stand inside them."""

from typing import Annotated

import typer

from bayes_gda.cli import options as o
from bayes_gda.cli import outputs, tabular
from bayes_gda.cli.commands.app import command
from bayes_gda.cli.shell import NO, QUIET, VERBOSE, loudness
from bayes_gda.missing import Complete

OnMissing = Annotated[
    Complete,
    typer.Option("--missing", rich_help_panel="The table", help="What a missing value does: stop, or drop its row."),
]


@command()
def check(
    model: Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help="A file that `fit` wrote.")],
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 for amber, too.")] = False,
    json: o.Json = False,
) -> None:
    """Print the verdict on a saved model; exit code 1 if it is red, for use in CI."""
    from bayes_gda.cli.actions import fits
    from bayes_gda.store import load

    estimator = load(model)
    if json:
        outputs.write_json(fits.summary(estimator))
    elif loudness() > QUIET:
        fits.show_fit(estimator)
    if estimator.trust_.light == "red" or (strict and estimator.trust_.light == "amber"):
        raise typer.Exit(NO)


@command()
def effects(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            show_default=False,
            help="A file that `fit` wrote, or the name of a model to fit to ROWS, such as logistic.",
        ),
    ],
    rows: Annotated[
        str,
        typer.Argument(
            metavar="ROWS",
            show_default=False,
            help="A table, or - for stdin, that has the columns of the model: the rows to average over.",
        ),
    ],
    kind: Annotated[
        o.EffectKind,
        typer.Option(
            "--kind",
            help="slopes: change of probability per unit, of categories against the first level; comparisons: from one "
            "value to another, +1 for numbers; predictions: average probabilities; odds: odds ratios, where log odds "
            "are linear.",
        ),
    ] = o.EffectKind.slopes,
    variable: Annotated[
        list[str] | None,
        typer.Option(
            "--variable", "-x", metavar="COL", show_default="all", help="A column to change. May be repeated."
        ),
    ] = None,
    values: Annotated[
        tuple[str, str] | None,
        typer.Option("--values", metavar="FROM TO", show_default=False, help="What to compare, of one --variable."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COL", show_default=False, help="Average over the rows of each value of COL."),
    ] = None,
    interval: Annotated[float, typer.Option("--interval", metavar="PROB", help="Probability of the intervals.")] = 0.9,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", show_default="a table for people", help="Write rows; - is stdout."),
    ] = None,
    to: o.To = None,
    json: o.Json = False,
    target: o.Target = None,
    categorical: o.Categorical = None,
    drop: o.Drop = None,
    missing: OnMissing = "error",
    format: o.FormatOption = None,
    sep: o.Sep = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    seed: o.Seed = 0,
) -> None:
    """Average effects of the columns on the probabilities, with intervals, or odds ratios."""
    outputs.check_file(out, inputs=[model, rows])
    type_ = tabular.check_kind(out, to and to.value)
    from bayes_gda.cli.actions import effects
    from bayes_gda.cli.actions.fits import model_name

    options = effects.EffectOptions(kind.value, tuple(variable or ()), by, values, interval)
    table_options = o.table_options(target, categorical, drop, missing, None, False, (sep, decimal, encoding), format)
    estimator, coding, frame = effects.open_model(model, rows, table_options, seed)
    with outputs.progress("Effects") as advance:
        table = effects.effects_table(estimator, coding, frame, options, advance)
    if json or out is not None or to is not None:
        summary = {"model": model_name(estimator), "kind": kind.value, "n": len(frame), "interval": interval}
        tabular.write_rows(table, out, summary if json else None, type_)
    else:
        effects.show_effects(table, options, estimator, len(frame))


_REPORT = "The folder of a report, or its report.json."


@command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", show_default=False, help=_REPORT)],
    b: Annotated[str, typer.Argument(metavar="B", show_default=False, help=_REPORT)],
    json: o.Json = False,
) -> None:
    """Compare two reports: conclusions, and numbers that changed by more than their noise; --verbose lists all.

    Exit codes: 0 the same, 1 there are differences, 2 wrong input.
    """
    from bayes_gda.cli.actions import differences
    from bayes_gda.reporting.difference import compare_reports, read_report

    difference = compare_reports(read_report(a), read_report(b))
    if json:
        outputs.write_json(differences.as_json(difference, a, b))
    elif loudness() > QUIET:
        differences.show_difference(difference, everything=loudness() == VERBOSE)
    if not difference.same:
        raise typer.Exit(NO)
