"""From a table to models and answers: `report`, `fit`, `predict`, `compare`. Heavy imports stand inside them."""

from typing import Annotated, Any

import typer

from bayes_gda.cli import options as o
from bayes_gda.cli import outputs, tabular
from bayes_gda.cli.commands.app import command
from bayes_gda.cli.completion import complete_models
from bayes_gda.cli.shell import NO, QUIET, loudness, note
from bayes_gda.errors import DataError
from bayes_gda.missing import Predicted


@command(epilog=o.COSTS)
def report(
    data: o.Data,
    target: o.Target = None,
    models: o.Models = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", show_default="reports/NAME", help="The folder of the report."),
    ] = None,
    test_size: o.TestSize = "0.3",
    test: o.TestFile = None,
    cost: o.CostFile = None,
    quick: Annotated[bool, typer.Option("--quick", help="No MCMC: exact and Laplace only, in seconds.")] = False,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMS",
            help="How the page is written: html, md (Markdown) or both, separated by a comma. report.json always is. "
            "For a PDF print the page from a browser.",
        ),
    ] = "html,md",
    strict: Annotated[bool, typer.Option("--strict", help="Leave with exit code 1 if any light is red.")] = False,
    json: o.Json = False,
    categorical: o.Categorical = None,
    drop: o.Drop = None,
    missing: o.OnGaps = "error",
    formula: o.Formula = None,
    drop_constant: o.DropConstant = False,
    format: o.FormatOption = None,
    sep: o.Sep = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    inference: Annotated[
        o.Inference,
        typer.Option(
            "--inference",
            rich_help_panel=o._FIT,
            help="The method that predictions rest on, in the models that have it; auto: the best one. All others that "
            "apply are compared with it.",
        ),
    ] = o.Inference.auto,
    link: o.LinkOption = None,
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
    text = sep, decimal, encoding
    options = o.table_options(target, categorical, drop, missing, formula, drop_constant, text, format)
    rows, costs = o.read(data, options), None
    tested = None if test is None else o.read_test(test, rows, options)
    if cost is not None:
        costs = o.costs(cost, rows.class_names)
    from bayes_gda.cli.actions import reports

    settings: dict[str, Any] = {
        "models": chosen,
        "test_size": size,
        "costs": None if costs is None else costs.matrix,
        "action_names": None if costs is None else costs.actions,
        "cost_file": cost,
        "test_name": test,
        "quick": quick,
        "inference": inference.value,
        "link": "exact" if link is None else link.value,
        "formats": [form.strip() for form in to.split(",")],
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
        made = reports.write(rows, folder, {**settings, "progress": advance}, tested)
    if json:
        outputs.write_json(reports.as_json(made))
    elif loudness() > QUIET:
        reports.show_report(made)
    if strict and made.light == "red":
        raise typer.Exit(NO)


@command()
def fit(
    data: o.DataOrFolder,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            autocompletion=complete_models,
            show_default=False,
            help="lda, qda, naive, rda (between them), student, mixture, mixed, logistic (2 classes), softmax (more).",
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
    format: o.FormatOption = None,
    sep: o.Sep = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    inference: o.InferenceOption = o.Inference.auto,
    prior_scale: o.PriorScale = None,
    degree: o.Degree = None,
    link: o.LinkOption = None,
    own: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            show_default=False,
            rich_help_panel="The computation",
            help="student: scales=own or shared; mixture: components=2, or 2,1 of two classes, and covariances=own, "
            "shared or diagonal. May be repeated.",
        ),
    ] = None,
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
    from bayes_gda.cli.actions import fits, tables
    from bayes_gda.cli.inputs import model_names
    from bayes_gda.store import save

    model_names([model], "--model")
    fit_options = fits.FitOptions(
        inference.value, sampler.value, draws, chains, seed, prior_scale, degree, tolerance, link and link.value, own
    )
    text = sep, decimal, encoding
    options = o.table_options(target, categorical, drop, missing, formula, drop_constant, text, format)
    if batches or cluster is not None or tables.in_batches(data):
        made = tables.fit_table(model, data, options, fit_options, cluster)
    else:
        made = tables.fit_whole(model, data, options, fit_options)
    save(made.estimator, out, encoding=made.encoding)
    note(f"Wrote {out}.")
    if json:
        outputs.write_json({**fits.summary(made.estimator), "n": made.n, "fingerprint": made.fingerprint, "out": out})
    elif loudness() > QUIET:
        fits.show_fit(made.estimator)


@command(epilog=o.COSTS)
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help="A file that `fit` wrote.")],
    new: Annotated[
        str,
        typer.Argument(
            metavar="NEW",
            show_default=False,
            help="A table, or - for stdin, that has the columns of the model, in any order; others are ignored.",
        ),
    ],
    out: o.Rows = None,
    to: o.To = None,
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
    format: o.FormatOption = None,
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
    kind = tabular.check_kind(out, to and to.value)
    if not 0 <= interval < 1:
        raise DataError(f"`--interval` must be at least 0 and below 1; got {interval:g}. Use 0.9 for 90 %.")
    if novel is not None and not 0 < novel < 1:
        raise DataError(f"`--novel` must lie between 0 and 1; got {novel:g}. Use 0.01 for one false alarm in 100 rows.")
    if worth and missing != "use":
        raise DataError("`--worth` is about rows with missing values. Add: --missing use")
    from bayes_gda.cli.actions import rows
    from bayes_gda.cli.actions.fits import model_name
    from bayes_gda.cli.inputs import read_new_rows
    from bayes_gda.data.frames.text import Dialect
    from bayes_gda.store import load, load_encoding

    estimator = load(model)
    coding = rows.model_encoding(estimator, load_encoding(model))
    costs = None if cost is None else o.costs(cost, estimator.classes_.tolist())
    frame = read_new_rows(new, coding, Dialect(sep, decimal, encoding), format and format.value)
    options = rows.PredictOptions(interval, costs, tuple(keep or ()), missing, novel, worth, trust)
    with outputs.progress("Predicting") as advance:
        table = rows.predict_rows(estimator, coding, frame, options, advance)
    counts = {str(label): int((table["prediction"] == label).sum()) for label in estimator.classes_.tolist()}
    summary = {"model": model_name(estimator), "n": len(table), "interval": interval, "predicted": counts}
    tabular.write_rows(table, out, summary if json else None, kind, formulas=formulas)


@command()
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
    format: o.FormatOption = None,
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
    text = sep, decimal, encoding
    options = o.table_options(target, categorical, drop, missing, formula, drop_constant, text, format)
    rows = o.read(data, options)
    from bayes_gda.cli.actions import fits, scores
    from bayes_gda.families.registry import default_families

    fit_options = fits.FitOptions(inference.value, sampler.value, draws, chains, seed, tolerance=tolerance)
    names = chosen or tuple(f.name for f in default_families(rows.K, gaps=rows.has_missing, encoding=rows.encoding))
    with outputs.progress("Comparing", silent=inference is o.Inference.mcmc) as advance:
        result = scores.compare(rows, names, size, fit_options, advance)
    if json:
        outputs.write_json(scores.as_json(result, data))
    else:
        scores.show_comparison(result)
