"""How a report is made: which models, which rows are held out, how much is sampled, and who hears of the progress."""

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats, finite
from bayes_gda.data.classes import draw_test_rows
from bayes_gda.data.columns import Encoding
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.families.base import Family
from bayes_gda.families.registry import default_families, family_names, get_family
from bayes_gda.methods.settings import TOLERANCE, Inference, Link, Settings, seed_of

# How long stages take beside each other, by their first words, as the timings of the gallery's reports show; others 1.
EFFORT = {"fit": 6.0, "sample": 10.0, "evaluate": 4.0, "weigh": 1.0, "draw": 15.0, "write": 3.0}

# Called with the name of the stage that begins, and the share of the work that is done.
Progress = Callable[[str, float], None]
# Forms in which the page is written.
FORMATS = ("html", "md")
# Levels that a category may have in any table; in larger ones, per row.
MOST_LEVELS, LEVELS_PER_ROW = 50, 0.5


def _silent(stage: str, fraction: float) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportSettings:
    """What to put into a report, and how to compute it.

    Parameters
    ----------
    models
        Names of families; None for all that apply to the data. With rda among them, or None, the
        report also says where between naive, LDA and QDA the data sit, and how that average predicts.
    test_size
        Share or number of rows that are held out, if no test set is given.
    costs, action_names
        (A, K) loss of each action under each class, and (A,) names of the actions; None counts a wrong class as 1, and
        calls as many actions as there are classes by these.
    quick
        Whether to leave MCMC out. PyMC is then not even imported.
    inference
        The method that the predictions rest on, in the models that have it; `auto` is the best one. The others stand
        beside it in any case.
    link
        How a Gaussian posterior of the weights of a regression becomes probabilities: `exact` or `probit`.
    sampler, draws, chains
        Which NUTS, draws of each chain, and the number of chains; other methods draw as many altogether.
    random_seed
        Of the split and of all draws.
    tolerance
        How far a probability may be off, between 0 and 1.
    progress
        Called with the name of each stage and the share of the work done before it.
    formats
        Forms of the page that are written, out of `html` and `md`; report.json and the figures always are.
    data_name, target
        What the data and their class column are called on the command line, so that the report can name the exact
        command; None if the report was asked for in Python.
    table_options, cost_file, test_name
        Further words of the command line that say how the table is read, such as `("--drop", "id")`; the cost file; the
        file of the test rows.
    """

    models: Sequence[str] | None = None
    test_size: float = 0.3
    costs: ArrayLike | None = None
    action_names: Sequence[str] | None = None
    quick: bool = False
    inference: Inference = "auto"
    link: Link = "exact"
    sampler: str = "pymc"
    draws: int = 1000
    chains: int = 4
    random_seed: int = 0
    tolerance: float = TOLERANCE
    progress: Progress = _silent
    formats: Sequence[str] = FORMATS
    data_name: str | None = None
    target: str | None = None
    table_options: Sequence[str] = ()
    cost_file: str | None = None
    test_name: str | None = None

    def __post_init__(self) -> None:
        if self.models is not None:
            names = tuple(self.models)
            known = family_names()
            if not names or len(set(names)) < len(names) or not set(names) <= set(known):
                raise DataError(f"`models` must be different ones of {', '.join(known)}; got {list(names)}.")
            if all(get_family(name).averages for name in names):
                raise DataError(
                    f"`models` must hold one to report on; got {names[0]} alone, which is only scored. Add lda."
                )
            object.__setattr__(self, "models", names)
        for name, least in (("draws", 100), ("chains", 1), ("random_seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise DataError(f"`{name}` must be a whole number of at least {least}; got {value!r}.")
        if not self.formats or len(set(self.formats)) < len(self.formats) or not set(self.formats) <= set(FORMATS):
            raise DataError(f"`formats` must be one or both of {', '.join(FORMATS)}; got {list(self.formats)}.")
        object.__setattr__(self, "formats", tuple(self.formats))
        self.ladder()  # which checks the rest
        if self.quick and self.inference == "mcmc":
            raise DataError("`inference` must not be 'mcmc' with quick=True, which leaves MCMC out. Drop one of them.")

    @property
    def size(self) -> int:
        """Draws altogether."""
        return self.draws * self.chains

    def families(self, data: Dataset, *, gaps: bool = False) -> tuple[type[Family], ...]:
        """Return the models to fit to data, those that average over others aside.

        Parameters
        ----------
        data
            What they are fitted to.
        gaps
            Whether rows have missing values, which some models do not take: these are left out, or refused if they
            were asked for.
        """
        if self.models is None:
            asked = default_families(data.K, gaps=gaps, encoding=data.encoding)
        else:
            asked = tuple(get_family(name) for name in self.models)
            for family in asked:
                family.check(data.K)
                if gaps and not family.takes_gaps:
                    takers = ", ".join(name for name in family_names() if get_family(name).takes_gaps)
                    raise DataError(
                        f"`models` must take the missing values of these rows, as {takers} do; got {family.name}. "
                        "Leave it out, or load the data with missing='drop'."
                    )
        return tuple(family for family in asked if not family.averages)

    def left_out(self, data: Dataset) -> tuple[str, ...]:
        """Return the names of models that are not fitted to rows with missing values, though they apply otherwise."""
        if self.models is not None:
            return ()
        return tuple(f.name for f in default_families(data.K, encoding=data.encoding) if not f.takes_gaps)

    def average(self, K: int, *, gaps: bool = False) -> type[Family] | None:
        """Return the model that averages over others, to say where the data sit; None if it was not asked for."""
        asked = default_families(K, gaps=gaps) if self.models is None else [get_family(name) for name in self.models]
        return next((family for family in asked if family.averages), None)

    def ladder(self) -> Settings:
        """Return how the ladder is to fit: with the seed that an estimator has for the same `random_state`."""
        seed = seed_of(self.random_seed)
        return Settings(
            self.inference, self.draws, self.chains, self.sampler, seed, tolerance=self.tolerance, link=self.link
        )

    def cost_matrix(self, K: int) -> Floats:
        """Return the costs (A, K), checked; 0 for the right class and 1 for another by default."""
        if self.costs is None:
            return 1.0 - np.eye(K)
        costs = finite("costs", self.costs, error=DataError)
        if costs.ndim != 2 or costs.shape[1] != K or len(costs) < 2:
            raise DataError(f"`costs` must be (A, {K}), two actions or more by {K} classes; got shape {costs.shape}.")
        names = self.action_names
        if names is not None and (len(names) != len(costs) or len(set(names)) < len(names)):
            raise DataError(f"`action_names` must be {len(costs)} different names, one per action; got {list(names)}.")
        return costs

    @property
    def title(self) -> str:
        """What the report is called: the data and the class column, as far as they are known."""
        name = (self.data_name or "").removeprefix("example:")
        name = name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
        parts = [name or "Bayesian classification", *([self.target] if self.target else [])]
        return ": ".join(parts)

    def command(self, verb: str = "report", *options: str) -> str:
        """Return a command line on these data; DATA and COLUMN stand for what is not known."""
        source, target = self.data_name or "DATA", self.target
        words = ["bayes-gda", verb, source]
        # Examples know their class column.
        if target is not None or not source.startswith("example:"):
            words += ["--target", target or "COLUMN"]
        return shlex.join([*words, *self.table_options, *options])

    def python_data(self) -> str:
        """Return Python lines that read these data; those of a library caller are not known."""
        if self.data_name is None:
            return "# data: the Dataset of this report"
        if self.data_name.startswith("example:"):
            name = self.data_name.removeprefix("example:")
            return f"from bayes_gda.data.examples import load_example\ndata = load_example({name!r})"
        dropped: list[str] = []
        categorical: list[str] = []
        options = [f"target={self.target!r}"] if self.target is not None else []
        words = iter(self.table_options)
        for word in words:
            if word == "--drop-constant":
                options.append("constant='drop'")
                continue
            value = next(words)
            if word in ("--drop", "--categorical"):
                (dropped if word == "--drop" else categorical).append(value)
            elif word in ("--missing", "--formula"):
                options.append(f"{word.removeprefix('--')}={value!r}")
        if categorical:
            options.append(f"categorical={categorical!r}")
        frame = "frame" + (f".drop(columns={dropped!r})" if dropped else "")
        return (
            "from pathlib import Path\n"
            "from bayes_gda.data.files import read_frame\n"
            "from bayes_gda.data.table import Dataset\n"
            f"frame = read_frame(Path({self.data_name!r}))\n"
            f"data = Dataset.from_frame({', '.join([frame, *options])})"
        )

    def method_options(self) -> list[str]:
        """Return the options of the method and the link that were asked for; none by default."""
        options = [] if self.inference == "auto" else ["--inference", self.inference]
        return options if self.link == "exact" else [*options, "--link", self.link]

    def own_command(self) -> str:
        """Return the command line that makes this report again."""
        options: list[str] = []
        if self.models is not None:
            options += ["--models", ",".join(self.models)]
        options += ["--quick"] if self.quick else ["--draws", str(self.draws), "--chains", str(self.chains)]
        if self.sampler != "pymc" and not self.quick:
            options += ["--sampler", self.sampler]
        options += self.method_options()
        if self.tolerance != TOLERANCE:
            options += ["--tolerance", f"{self.tolerance:g}"]
        if self.costs is not None:
            options += ["--cost", self.cost_file or "COSTS"]
        if self.formats != FORMATS:
            options += ["--to", ",".join(self.formats)]
        held = ["--test-size", f"{self.test_size:g}"] if self.test_name is None else ["--test", self.test_name]
        return self.command("report", *held, "--seed", str(self.random_seed), *options)


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """Stages in their order: tells the user which one begins, and keeps how long each took.

    Parameters
    ----------
    progress
        Told of each stage, and of the share of the effort before it.
    steps
        The stages that are expected, each by its first word and how often it comes.
    """

    progress: Progress
    steps: Mapping[str, int]
    seconds: dict[str, float] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    def of(self, model: str) -> Callable[[str], AbstractContextManager[None]]:
        """Return the function that times a step of one model."""
        return lambda step: self.stage(f"{step} {model}")

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        total = sum(count * EFFORT.get(step, 1.0) for step, count in self.steps.items())
        done = sum(EFFORT.get(step.split()[0], 1.0) for step in self.done)
        self.progress(name, min(1.0, done / total))
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
            self.done.append(name)


def _refuse_names(data: Dataset) -> None:
    """Raise if a text column has nearly as many levels as there are rows, such as the names of the passengers."""
    for column in data.encoding.columns if isinstance(data.encoding, Encoding) else ():
        if len(column.levels) > max(MOST_LEVELS, LEVELS_PER_ROW * data.n):
            raise DataError(
                f"Column {column.name!r} has {len(column.levels)} levels in {data.n} rows, as names and identifiers "
                f"do. Leave it out: --drop {shlex.quote(column.name)}."
            )


def split(data: Dataset, test: Dataset | None, settings: ReportSettings) -> tuple[Dataset, Dataset, NDArray[np.intp]]:
    """Return training rows and held-out rows, of the same columns and classes; the latter's numbers."""
    data.require_rows(2, "The report")
    _refuse_names(data)
    if test is None:
        held = draw_test_rows(data.y, data.class_names, settings.test_size, settings.random_seed)
        return data.subset(~held), data.subset(held), np.flatnonzero(held)
    if test.feature_names != data.feature_names or test.class_names != data.class_names:
        raise DataError(
            "`test` must have the features and classes of `data`. Make it with data.encode_labelled(frame)."
        )
    return data, test, np.arange(test.n)
