"""The options that several commands share, each with the sentence that `--help` shows."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from bayes_gda.cli.completion import complete_columns, complete_models
from bayes_gda.errors import DataError
from bayes_gda.missing import Training


class Inference(StrEnum):
    """The methods."""

    auto = "auto"
    exact = "exact"
    laplace = "laplace"
    ep = "ep"
    variational = "variational"
    mcmc = "mcmc"


class Link(StrEnum):
    """How a Gaussian posterior becomes probabilities."""

    exact = "exact"
    probit = "probit"


class Sampler(StrEnum):
    """The samplers."""

    auto = "auto"
    pymc = "pymc"
    hmc = "hmc"
    nutpie = "nutpie"
    numpyro = "numpyro"


class Format(StrEnum):
    """Types of tables."""

    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"
    feather = "feather"
    xlsx = "xlsx"


class EffectKind(StrEnum):
    """Kinds of effects."""

    slopes = "slopes"
    comparisons = "comparisons"
    predictions = "predictions"
    odds = "odds"


class Simulation(StrEnum):
    """What can be simulated."""

    gaussian = "gaussian"
    lda_mixture = "lda-mixture"
    qda_mixture = "qda-mixture"
    three_spheres = "three-spheres"


_TABLE = "The table"
TYPES = ", ".join(Format)
_FIT = "The computation"

_FILES = "A file (.csv, .tsv, .csv.gz, .tsv.gz, .parquet, .feather, .xlsx, .jsonl), - for stdin,"
_EXAMPLES = "or example:NAME; `bayes-gda examples` lists the names."
Data = Annotated[str, typer.Argument(metavar="DATA", show_default=False, help=f"{_FILES} {_EXAMPLES}")]
DataOrFolder = Annotated[
    str,
    typer.Argument(metavar="DATA", show_default=False, help=f"{_FILES} a folder of .parquet files, {_EXAMPLES}"),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        autocompletion=complete_columns,
        metavar="COL",
        show_default=False,
        rich_help_panel=_TABLE,
        help="The column that holds the classes. Needed for a file; an example knows its own.",
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical",
        autocompletion=complete_columns,
        metavar="COL",
        show_default=False,
        rich_help_panel=_TABLE,
        help="A column to take as categorical even if it looks numeric. May be repeated.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        autocompletion=complete_columns,
        metavar="COL",
        show_default=False,
        rich_help_panel=_TABLE,
        help="A column to leave out, such as an identifier. May be repeated.",
    ),
]
OnGaps = Annotated[
    Training,
    typer.Option(
        "--missing",
        rich_help_panel=_TABLE,
        help="What a missing value does: stop, drop its row, or keep the row for what it has: lda, qda, naive, which "
        "integrate the rest out.",
    ),
]
InBatches = Annotated[
    bool,
    typer.Option(
        "--batches",
        rich_help_panel=_TABLE,
        help="Read DATA in batches, in flat memory. So are folders, and files larger than an eighth of the memory.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        show_default=False,
        rich_help_panel=_TABLE,
        help="Scheduler of a Dask cluster to fit on; DATA is then .parquet or a folder of it, as its workers see it.",
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--models",
        metavar="NAMES",
        autocompletion=complete_models,
        show_default=False,
        help="Out of lda, qda, naive, rda, logistic, softmax, student, mixture, mixed; separated by commas. Default: "
        "the first six as far as they apply, and mixed where columns are of several types.",
    ),
]
TestSize = Annotated[
    str,
    typer.Option(
        "--test-size", metavar="SIZE", help="Share of the rows to hold out, between 0 and 1, or their number."
    ),
]
TestFile = Annotated[
    str | None,
    typer.Option(
        "--test",
        metavar="FILE",
        show_default=False,
        help="A table with the columns and classes of DATA to judge the models on, in place of held-out rows.",
    ),
]
CostFile = Annotated[
    str | None,
    typer.Option(
        "--cost",
        metavar="FILE",
        show_default=False,
        help="Costs of decisions, CSV or JSON: one row an action, one column a true class. See below.",
    ),
]
InferenceOption = Annotated[
    Inference,
    typer.Option(
        "--inference",
        rich_help_panel=_FIT,
        help="auto: exact where there is a closed form, else Laplace, checked and corrected, else MCMC.",
    ),
]
SamplerOption = Annotated[
    Sampler,
    typer.Option(
        "--sampler",
        rich_help_panel=_FIT,
        help="Of MCMC: pymc, nutpie and numpyro are NUTS (the last two if installed), hmc is split HMC; auto chooses.",
    ),
]
Draws = Annotated[int, typer.Option("--draws", metavar="N", min=1, rich_help_panel=_FIT, help="Draws of each chain.")]
Chains = Annotated[int, typer.Option("--chains", metavar="N", min=1, rich_help_panel=_FIT, help="Number of chains.")]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", min=0, max=2**32 - 1, rich_help_panel=_FIT, help="The same seed gives the same answer."
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        "--tolerance",
        metavar="T",
        rich_help_panel=_FIT,
        help="How far a probability may be off, between 0 and 1: by the approximation of the posterior, or by two "
        "Monte Carlo standard errors.",
    ),
]
PriorScale = Annotated[
    str | None,
    typer.Option(
        "--prior-scale",
        metavar="SCALE",
        show_default="2.5",
        rich_help_panel=_FIT,
        help="logistic, softmax: sd of the slopes' prior, or hierarchical, or empirical-bayes.",
    ),
]
LinkOption = Annotated[
    Link | None,
    typer.Option(
        "--link",
        show_default="exact",
        rich_help_panel=_FIT,
        help="logistic, softmax: how a Gaussian posterior becomes probabilities, by the link integrated or by the "
        "probit approximation.",
    ),
]
Degree = Annotated[
    int | None,
    typer.Option(
        "--degree",
        metavar="N",
        min=1,
        max=5,
        show_default="1",
        rich_help_panel=_FIT,
        help="logistic, softmax: degree of the polynomial features.",
    ),
]
Novel = Annotated[
    float | None,
    typer.Option(
        "--novel",
        metavar="RATE",
        show_default=False,
        help="Add `novel` and `tail_probability`: is the row far out for every class? A share RATE, such as 0.01, of "
        "ordinary rows are false alarms. For lda, qda, naive.",
    ),
]
Worth = Annotated[
    bool,
    typer.Option(
        "--worth",
        help="Add `measure_next`, the missing feature that would lower the expected loss most, and its `gain`, in "
        "costs or, without --cost, in error rate. For lda, qda, naive, with --missing use.",
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Add a `verdict` on each row and how far its probabilities may be off, `error`, with its parts: "
        "`approximation_error` of the posterior, `monte_carlo_error` (a standard error) of draws, `link_error`.",
    ),
]
Formulas = Annotated[
    bool,
    typer.Option(
        "--formulas",
        help="Write text that begins with =, +, - or @ to the CSV as it is; without this an apostrophe stands before "
        "it, so that no spreadsheet takes it for a formula.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Rows = Annotated[
    str | None,
    typer.Option(
        "--out", "-o", metavar="FILE", show_default="stdout", help="The file to write; - is stdout. CSV, or see --to."
    ),
]
To = Annotated[
    Format | None,
    typer.Option(
        "--to",
        metavar="TYPE",
        show_default="as the name of -o ends, or csv",
        help=f"Type of the rows written: {TYPES}.",
    ),
]


Formula = Annotated[
    str | None,
    typer.Option(
        "--formula",
        metavar="TEXT",
        show_default=False,
        rich_help_panel=_TABLE,
        help="Features as formulaic reads them: 'species ~ bill + C(island)*sex'. Its target stands for --target.",
    ),
]
DropConstant = Annotated[
    bool, typer.Option("--drop-constant", rich_help_panel=_TABLE, help="Leave out all columns that do not vary.")
]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        metavar="TYPE",
        show_default="as the name ends; of stdin csv",
        rich_help_panel=_TABLE,
        help=f"Type of the table: {TYPES}.",
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(
        "--sep", metavar="CHAR", show_default="as found", rich_help_panel=_TABLE, help="Separator of a text file."
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        "--decimal", metavar="CHAR", show_default="as found", rich_help_panel=_TABLE, help="Decimal mark: . or a comma."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        show_default="UTF-8",
        rich_help_panel=_TABLE,
        help="Encoding of a text file, such as latin-1.",
    ),
]

# Lines end where they end, so that the examples can be read.
COSTS = """\
[bold]A cost file[/bold] has a row for each action and a column for each true class;
a benefit is a negative cost. As CSV, and the same as JSON:

    action,benign,malignant
    send home,0,50
    operate,10,1

    {"send home": {"benign": 0, "malignant": 50},
     "operate": {"benign": 10, "malignant": 1}}

Names may be left out if the actions are the classes, in their sorted order:
two lines 0,50 and 10,0, or \\[[0, 50], [10, 0]].
"""


def parse_size(text: str) -> float | int:
    """Return a share (0.3) or a number of rows (50)."""
    try:
        return int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        raise DataError(f"`--test-size` must be a share such as 0.3 or a number of rows; got {text!r}.") from None


# ── From text to values ─────────────────────────────────────────────────────────────────────────────────────────────


def read(source: str, options: Any) -> Any:
    """Read the table that the options describe."""
    from bayes_gda.cli.inputs import read_data

    return read_data(source, options)


def read_test(source: str, data: Any, options: Any) -> Any:
    """Read the rows to judge models on, as those of `data` were read."""
    from bayes_gda.cli.inputs import read_test_rows

    return read_test_rows(source, data, options)


def table_options(
    target: Any, categorical: Any, drop: Any, missing: str, formula: Any, constant: bool, text: Any, kind: Any = None
) -> Any:
    """Return how to read a table, by the options of a command."""
    from bayes_gda.cli.inputs import TableOptions
    from bayes_gda.data.frames.text import Dialect

    columns = tuple(categorical or ()), tuple(drop or ())
    constants = "drop" if constant else "error"
    return TableOptions(target, *columns, missing, formula, constants, Dialect(*text), kind and kind.value)


def costs(path: str, class_names: Any) -> Any:
    """Read a file of costs for these classes."""
    from bayes_gda.cli.inputs import read_costs

    return read_costs(path, class_names)
