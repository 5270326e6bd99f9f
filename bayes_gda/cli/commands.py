"""The commands: what `--help` shows, and the way from arguments to calls. Heavy imports stand inside them."""

from typing import Annotated, Any

import typer

from bayes_gda._version import __version__
from bayes_gda.cli import options as o
from bayes_gda.cli import outputs
from bayes_gda.cli.shell import NO, Shell, say
from bayes_gda.errors import DataError
from bayes_gda.missing import Predicted

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


@app.command(epilog=o.COSTS)
def report(
    data: o.Data,
    target: o.Target = None,
    models: o.Models = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", show_default="reports/NAME", help="The folder of the report."),
    ] = None,
    test_size: o.TestSize = "0.3",
    cost: o.CostFile = None,
    quick: Annotated[bool, typer.Option("--quick", help="No MCMC: exact and Laplace only, in seconds.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Leave with exit code 1 if any light is red.")] = False,
    json: o.Json = False,
    categorical: o.Categorical = None,
    drop: o.Drop = None,
    missing: o.OnMissing = "error",
    formula: o.Formula = None,
    drop_constant: o.DropConstant = False,
    sep: o.Sep = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    sampler: o.SamplerOption = o.Sampler.pymc,
    draws: o.Draws = 1000,
    chains: o.Chains = 4,
    seed: o.Seed = 0,
    tolerance: o.Tolerance = 0.01,
) -> None:
    """Write a report on DATA: conclusions, diagnostics, calibration, decisions, comparison of models."""
    folder = outputs.check_report_folder(out, data, cost)
    from bayes_gda.cli.inputs import model_names

    chosen, size = model_names(models, "--models"), o.parse_size(test_size)
    options = o.table_options(target, categorical, drop, missing, formula, drop_constant, (sep, decimal, encoding))
    rows, costs = o.read(data, options), None
    if cost is not None:
        costs = o.costs(cost, rows.class_names)
    from bayes_gda.cli import reports

    settings: dict[str, Any] = {
        "models": chosen,
        "test_size": size,
        "costs": None if costs is None else costs.matrix,
        "action_names": None if costs is None else costs.actions,
        "cost_file": cost,
        "quick": quick,
        "sampler": sampler.value,
        "draws": draws,
        "chains": chains,
        "random_seed": seed,
        "tolerance": tolerance,
        "data_name": data,
        "target": target,
        "table_options": options.words(),
    }
    with outputs.progress("Report") as advance:
        made = reports.write(rows, folder, {**settings, "progress": advance})
    if json:
        outputs.write_json(reports.as_json(made))
    else:
        reports.show_report(made)
    if strict and made.light == "red":
        raise typer.Exit(NO)


@app.command()
def fit(
    data: o.DataOrFolder,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            show_default=False,
            help="lda, qda, naive, rda (between them), logistic (two classes) or softmax (more).",
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="MODEL.nc", show_default=False, help="The file to write.")],
    target: o.Target = None,
    json: o.Json = False,
    categorical: o.Categorical = None,
    drop: o.Drop = None,
    missing: o.OnGaps = "error",
    formula: o.Formula = None,
    drop_constant: o.DropConstant = False,
    sep: o.Sep = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    inference: o.InferenceOption = o.Inference.auto,
    prior_scale: o.PriorScale = None,
    degree: o.Degree = None,
    link: o.LinkOption = None,
    sampler: o.SamplerOption = o.Sampler.auto,
    draws: o.Draws = 1000,
    chains: o.Chains = 4,
    seed: o.Seed = 0,
    tolerance: o.Tolerance = 0.01,
    batches: o.InBatches = False,
    cluster: o.Cluster = None,
) -> None:
    """Fit one model to DATA and save it; `predict` and `check` read the file, as do ArviZ and xarray."""
    outputs.check_file(out, inputs=[data], stdout=False)
    from bayes_gda.cli import fits, tables
    from bayes_gda.cli.inputs import model_names
    from bayes_gda.store import save

    model_names([model], "--model")
    how = fits.FitOptions(
        inference.value, sampler.value, draws, chains, seed, prior_scale, degree, tolerance, link and link.value
    )
    options = o.table_options(target, categorical, drop, missing, formula, drop_constant, (sep, decimal, encoding))
    if batches or cluster is not None or tables.in_batches(data):
        made = tables.fit_table(model, data, options, how, cluster)
    else:
        made = tables.fit_whole(model, data, options, how)
    save(made.estimator, out, encoding=made.encoding)
    say(f"Wrote {out}.")
    if json:
        outputs.write_json({**fits.summary(made.estimator), "n": made.n, "fingerprint": made.fingerprint, "out": out})
    else:
        fits.show_fit(made.estimator)


@app.command(epilog=o.COSTS)
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help="A file that `fit` wrote.")],
    new: Annotated[
        str,
        typer.Argument(
            metavar="NEW",
            show_default=False,
            help="A table that has the columns of the model, in any order; others are ignored.",
        ),
    ],
    out: o.Rows = None,
    cost: o.CostFile = None,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            metavar="PROB",
            help="Probability of the credible intervals; 0 leaves them out, which is faster.",
        ),
    ] = 0.9,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COL", show_default=False, help="A column of NEW to copy. May be repeated."),
    ] = None,
    missing: Annotated[
        Predicted,
        typer.Option(
            "--missing",
            help="What a missing value does: stop, leave its row's answer blank, or use what the row has: lda, qda, "
            "naive, which integrate the rest out.",
        ),
    ] = "error",
    novel: o.Novel = None,
    worth: o.Worth = False,
    trust: o.Trust = False,
    formulas: o.Formulas = False,
    json: o.Json = False,
    sep: o.Sep = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
) -> None:
    """Predict the rows of NEW: class, probabilities with credible intervals, and decisions under costs.

    The intervals say how well each probability is known. Far from all training
    rows the probability of a Gaussian model, which also weighs parameters by how
    well they explain the row, may leave its interval.
    """
    outputs.check_file(out, inputs=[model, new, *([] if cost is None else [cost])])
    if not 0 <= interval < 1:
        raise DataError(f"`--interval` must be at least 0 and below 1; got {interval:g}. Use 0.9 for 90 %.")
    if novel is not None and not 0 < novel < 1:
        raise DataError(f"`--novel` must lie between 0 and 1; got {novel:g}. Use 0.01 for one false alarm in 100 rows.")
    if worth and missing != "use":
        raise DataError("`--worth` is about rows with missing values. Add: --missing use")
    from bayes_gda.cli import rows
    from bayes_gda.cli.fits import model_name
    from bayes_gda.cli.inputs import read_new_rows
    from bayes_gda.data.frames.text import Dialect
    from bayes_gda.store import load, load_encoding

    estimator = load(model)
    coding = rows.model_encoding(estimator, load_encoding(model))
    costs = None if cost is None else o.costs(cost, estimator.classes_.tolist())
    frame = read_new_rows(new, coding, Dialect(sep, decimal, encoding))
    options = rows.PredictOptions(interval, costs, tuple(keep or ()), missing, novel, worth, trust)
    with outputs.progress("Predicting") as advance:
        table = rows.predict_rows(estimator, coding, frame, options, advance)
    counts = {str(label): int((table["prediction"] == label).sum()) for label in estimator.classes_.tolist()}
    summary = {"model": model_name(estimator), "n": len(table), "interval": interval, "predicted": counts}
    outputs.write_rows(table, out, summary if json else None, "rows", formulas=formulas)


@app.command()
def compare(
    data: o.Data,
    target: o.Target = None,
    models: o.Models = None,
    test_size: o.TestSize = "0.3",
    json: o.Json = False,
    categorical: o.Categorical = None,
    drop: o.Drop = None,
    missing: o.OnGaps = "error",
    formula: o.Formula = None,
    drop_constant: o.DropConstant = False,
    sep: o.Sep = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    inference: o.InferenceOption = o.Inference.auto,
    sampler: o.SamplerOption = o.Sampler.auto,
    draws: o.Draws = 1000,
    chains: o.Chains = 4,
    seed: o.Seed = 0,
    tolerance: o.Tolerance = 0.01,
) -> None:
    """Compare models on DATA: leave-one-out with stacking weights, held-out rows, evidence, and what they say."""
    from bayes_gda.cli.inputs import model_names

    chosen, size = model_names(models, "--models"), o.parse_size(test_size)
    options = o.table_options(target, categorical, drop, missing, formula, drop_constant, (sep, decimal, encoding))
    rows = o.read(data, options)
    from bayes_gda.cli import fits, scores
    from bayes_gda.families.registry import default_families

    how = fits.FitOptions(inference.value, sampler.value, draws, chains, seed, tolerance=tolerance)
    names = chosen or tuple(f.name for f in default_families(rows.K, gaps=rows.has_missing, encoding=rows.encoding))
    with outputs.progress("Comparing", quiet=inference is o.Inference.mcmc) as advance:
        result = scores.compare(rows, names, size, how, advance)
    if json:
        outputs.write_json(scores.as_json(result, data))
    else:
        scores.show_comparison(result)


@app.command()
def check(
    model: Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help="A file that `fit` wrote.")],
    strict: Annotated[bool, typer.Option("--strict", help="Let amber fail too.")] = False,
    json: o.Json = False,
) -> None:
    """Say whether a saved model is to be believed; exit code 1 if not (red), for use in CI."""
    from bayes_gda.cli import fits
    from bayes_gda.store import load

    estimator = load(model)
    if json:
        outputs.write_json(fits.summary(estimator))
    else:
        fits.show_fit(estimator)
    if estimator.trust_.light == "red" or (strict and estimator.trust_.light == "amber"):
        raise typer.Exit(NO)


@app.command()
def examples(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", show_default=False, help="The example to write; none lists them.")
    ] = None,
    out: o.Rows = None,
    json: o.Json = False,
    seed: o.Seed = 0,
) -> None:
    """List the example data sets, or write one as CSV; its last column, `class`, holds the classes."""
    outputs.check_file(out)
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
    outputs.write_rows(table_of(rows), out, summary if json else None, "rows")


@app.command()
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
    found = {"pi": truth.pi, "mu": truth.mu, "Sigma": truth.Sigma}
    summary = {"simulation": what.value, "n": n, "seed": seed, "truth": found}
    outputs.write_rows(table_of(drawn), out, summary if json else None, "rows")
