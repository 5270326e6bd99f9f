"""The page of the textbook: its figures, the hypothesis spaces, and the debate as experiments.

`python -m bayes_gda.teaching FOLDER`, or `make gallery`, writes it.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayes_gda.baselines import Perceptron
from bayes_gda.reporting.page.rendering import data_uri, render_textbook
from bayes_gda.reporting.plots import textbook
from bayes_gda.reporting.plots.style import Plot, save
from bayes_gda.reporting.plots.textbook.debate import plot_excess
from bayes_gda.teaching import debate, hypotheses
from bayes_gda.teaching.debate import Experiment

PAGE = "index.html"
# The three training examples of the notes' geometrical view.
_THREE_ROWS, _THREE_SIGNS = np.array([[1.0, 1.0], [0.5, 3.0], [2.0, 2.0]]), np.array([1, 1, -1])

# Figures by section: the function and its heading.
FIGURES: Mapping[str, Sequence[tuple[str, str]]] = {
    "gaussians": (
        ("plot_gaussian", "One Gaussian in one dimension"),
        ("plot_bivariate_contours", "Three bivariate Gaussians: contours"),
        ("plot_bivariate_surfaces", "Three bivariate Gaussians: surfaces"),
        ("plot_mixture_surface", "A mixture of two Gaussians"),
    ),
    "boundaries": (
        ("plot_lda_mixture", "LDA: contours, 1000 rows and the line"),
        ("plot_qda_mixture", "QDA: contours and the quadratic boundary"),
        ("plot_three_classes", "Boundaries of three classes"),
        ("plot_prior_shift", "Class probabilities move the boundary"),
    ),
    "reduction": (("plot_dimension_reduction", "Three classes in space and in the plane of their means"),),
    "links": (
        ("plot_links", "Logistic sigmoid and probit function"),
        ("plot_laplace", "Laplace approximation in one dimension"),
        ("plot_losses", "0/1, hinge, perceptron and logistic loss"),
        ("plot_perceptron_path", "Path of a perceptron"),
        ("plot_separability", "Exclusive or is not linearly separable"),
    ),
}
TITLES: Mapping[str, str] = {
    "gaussians": "Gaussian densities",
    "boundaries": "Decision boundaries",
    "reduction": "Classification after dimension reduction",
    "links": "Links, losses and searches",
}
# Experiments: the function, its heading, and how its table is drawn; None where the table says it all.
EXPERIMENTS: tuple[tuple[str, str, Mapping[str, Any] | None], ...] = (
    (
        "statistical_efficiency",
        "Statistical efficiency",
        {"setting": "rows", "label": "training rows", "panel": "distance", "logarithmic": True},
    ),
    ("computational_efficiency", "Computational efficiency", None),
    (
        "changing_loss",
        "Changing loss functions",
        {"setting": "cost_ratio", "label": "cost ratio", "quantity": "excess loss", "logarithmic": True},
    ),
    ("model_assumptions", "Model assumptions", {"setting": "truth", "label": "truth"}),
    ("missing_values", "Missing values", {"setting": "share", "label": "share of missing values", "panel": "new_rows"}),
    ("noise", "Noise", {"setting": "share", "label": "share of corrupted values"}),
)


def perceptron_path() -> Plot:
    """Draw the path of the online perceptron on the three training examples of the notes."""
    model = Perceptron(shuffle=False, record=True).fit(_THREE_ROWS, (_THREE_SIGNS > 0).astype(int))
    return textbook.plot_perceptron_path(model.path_[0], _THREE_ROWS, _THREE_SIGNS)


def textbook_figures() -> dict[str, Plot]:
    """Draw every figure of the textbook, by the name of its function."""
    special: dict[str, Callable[[], Plot]] = {"plot_perceptron_path": perceptron_path}
    names = [name for section in FIGURES.values() for name, _ in section]
    return {name: special.get(name, getattr(textbook, name))() for name in names}


def write_textbook(folder: Path, *, replicates: int | None = None) -> Path:
    """Write the page into a folder, and return its path.

    Parameters
    ----------
    folder
        Where to; made if it is not there.
    replicates
        Training sets of each setting of the experiments; None for the default of each.
    """
    plots = textbook_figures()
    sections = [
        {
            "name": key,
            "title": TITLES[key],
            "contents": [_figure(name, title, plots[name], f"textbook.{name}(…)") for name, title in figures],
        }
        for key, figures in FIGURES.items()
    ]
    sections.append({"name": "hypotheses", "title": "Hypothesis spaces", "contents": _hypothesis_contents()})
    contents = [item for entry in EXPERIMENTS for item in _experiment_contents(*entry, replicates)]
    sections.append({"name": "debate", "title": "The debate: which learner?", "contents": contents})
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / PAGE
    draft = page.with_suffix(".tmp")
    draft.write_text(render_textbook(sections), encoding="utf-8")
    draft.replace(page)
    return page


# ── Contents ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _text(text: str) -> dict[str, Any]:
    return {"kind": "text", "text": text}


def _figure(name: str, title: str, plot: Plot, call: str = "") -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        source = data_uri(save(plot, Path(scratch) / "figure.svg").read_bytes())
    width, height = (round(96 * inches) for inches in plot.figure.get_size_inches())
    words = {"title": title, "caption": plot.caption, "alt": plot.alt, "call": call}
    return {"kind": "figure", "name": name, "source": source, "width": width, "height": height} | words


def _table(title: str, table: pd.DataFrame, *, folded: bool = False) -> dict[str, Any]:
    numeric = [pd.api.types.is_numeric_dtype(table[column]) for column in table]
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    heads = [str(column).replace("_", " ") for column in table]
    return {"kind": "table", "title": title, "heads": heads, "numeric": numeric, "rows": rows, "folded": folded}


def _cell(value: Any) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float) and value != round(value):
        return f"{value:.3g}" if abs(value) >= 1e-4 else f"{value:.1e}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _hypothesis_contents() -> list[dict[str, Any]]:
    """Return the examples, the two tables of rules, and what they show."""
    data = hypotheses.boolean_examples()
    examples = pd.DataFrame(data.X.astype(int), columns=list(data.feature_names)).assign(y=data.y)
    examples.insert(0, "example", range(1, len(examples) + 1))
    rules, spaces = hypotheses.m_of_n_rules(data.d), (hypotheses.conjunctions(data.d), hypotheses.clauses(data.d))
    left = hypotheses.version_space(rules, data)
    wrong = hypotheses.corrected_entries()
    grid = hypotheses.m_of_n_table(data).reset_index().astype(object)
    grid = grid.where(grid.notna(), None).replace({0: "none"})
    functions, units = (
        f"{a}, {b} and {c}"
        for a, b, c in zip(*((2 ** (2**d), hypotheses.count_threshold_functions(d)) for d in (2, 3, 4)), strict=True)
    )
    return [
        _text(
            f"Of {2 ** (2**data.d)} boolean functions of four features the seven examples leave "
            f"{hypotheses.remaining_functions(data)}, and half of these say yes to each input that was not seen. None "
            f"of {len(spaces[0])} conjunctions and none of {len(spaces[1])} clauses explains the examples; of "
            f"{len(rules)} m-of-n rules {len(left)} does: {left[0]}."
        ),
        _table("Seven training examples", examples),
        _table("Conjunctions, each with its first counterexample", hypotheses.rule_table(spaces[0], data)),
        _table("m-of-n rules: first counterexample, or none", grid),
        _table("Entries of the notes' tables that are wrong: the printed example does not contradict the rule", wrong),
        _text(
            f"Every such rule is a linear threshold unit. Two, three and four features have {functions} boolean "
            f"functions, of which {units} are threshold units. Exclusive or and (x₁ ∧ x₂) ∨ (x₃ ∧ x₄) are not."
        ),
    ]


def _experiment_contents(
    name: str, title: str, drawing: Mapping[str, Any] | None, replicates: int | None
) -> list[dict[str, Any]]:
    """Run one experiment and return its claim, finding, figure and table."""
    options = {} if replicates is None or drawing is None else {"replicates": replicates}
    result: Experiment = getattr(debate, name)(**options)
    call = f"bayes_gda.teaching.debate.{name}({', '.join(f'{key}={value}' for key, value in options.items())})"
    contents: list[dict[str, Any]] = [
        {"kind": "claim", "title": title, "claim": result.claim, "finding": result.finding, "call": call}
    ]
    table = result.table
    if drawing is not None:
        contents.append(_figure(name, title, plot_excess(table, **drawing)))
    else:
        table = table.drop(columns="seconds")  # which differ from run to run, and would make equal pages differ
    contents.append(_table(f"{title}: the table", table, folded=drawing is not None))
    return contents
