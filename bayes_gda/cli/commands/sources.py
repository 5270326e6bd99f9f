"""Tables to try things on: `examples` and `simulate`."""

from typing import Annotated

import typer

from bayes_gda.cli import options as o
from bayes_gda.cli import outputs, tabular
from bayes_gda.cli.commands.app import command
from bayes_gda.errors import DataError


@command()
def examples(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", show_default=False, help="The example to write; none lists them.")
    ] = None,
    out: o.Rows = None,
    to: o.To = None,
    json: o.Json = False,
    seed: o.Seed = 0,
) -> None:
    """List the example data sets, or write one as CSV; its last column, `class`, holds the classes."""
    outputs.check_file(out)
    kind = tabular.check_kind(out, to and to.value)
    from bayes_gda.data.examples import describe_example, example_names, load_example

    if name is None:
        if out is not None:
            raise DataError("`-o` needs the name of an example. See: bayes-gda examples")
        lines = [(known, describe_example(known)) for known in example_names()]
        if json:
            outputs.write_json([{"name": known, "description": text} for known, text in lines])
        else:
            outputs.show_table("", ("name", "what it is"), lines, left=2)
        return
    from bayes_gda.cli.inputs import table_of

    name = name.removeprefix("example:")
    rows = load_example(name, random_seed=seed)
    summary = {"name": name, "description": describe_example(name), "n": rows.n, "classes": list(rows.class_names)}
    tabular.write_rows(table_of(rows), out, summary if json else None, kind)


@command()
def simulate(
    what: Annotated[
        o.Simulation,
        typer.Argument(
            metavar="WHAT",
            help="gaussian, with drawn means and covariances, or a textbook simulation: "
            "lda-mixture, qda-mixture, three-spheres.",
        ),
    ] = o.Simulation.gaussian,
    out: o.Rows = None,
    to: o.To = None,
    n: Annotated[int, typer.Option("--n", metavar="N", min=1, max=10_000_000, help="Rows.")] = 1000,
    d: Annotated[
        int | None, typer.Option("--d", metavar="N", min=1, max=1000, show_default="2", help="Features.")
    ] = None,
    classes: Annotated[
        int | None, typer.Option("--classes", metavar="N", min=2, max=1000, show_default="2", help="Classes.")
    ] = None,
    separation: Annotated[
        float | None,
        typer.Option(
            "--separation", metavar="SD", min=0.0, show_default="1.5", help="sd of the class means, in sds of a class."
        ),
    ] = None,
    shared: Annotated[bool, typer.Option("--shared", help="One covariance for all classes, as LDA has it.")] = False,
    seed: o.Seed = 0,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with the true parameters, and rows without -o.")
    ] = False,
) -> None:
    """Simulate rows of Gaussian classes as CSV; the last column, `class`, holds the classes."""
    outputs.check_file(out)
    kind = tabular.check_kind(out, to and to.value)
    from bayes_gda.cli.inputs import table_of
    from bayes_gda.data.examples import draw_gaussian, draw_textbook

    if what is o.Simulation.gaussian:
        drawn, truth = draw_gaussian(
            n,
            2 if d is None else d,
            2 if classes is None else classes,
            separation=1.5 if separation is None else separation,
            shared=shared,
            seed=seed,
        )
    else:
        if shared or any(option is not None for option in (d, classes, separation)):
            raise DataError(
                f"`--d`, `--classes`, `--separation` and `--shared` are for gaussian; {what} is fixed. Leave them out."
            )
        drawn, truth = draw_textbook(what.value, n, seed)
    parameters = {"pi": truth.pi, "mu": truth.mu, "Sigma": truth.Sigma}
    summary = {"simulation": what.value, "n": n, "seed": seed, "truth": parameters}
    tabular.write_rows(table_of(drawn), out, summary if json else None, kind)
