"""Tables that nobody wants to get, and that someone will send: features, labels, weights and names.

Hypothesis draws the structure (how many rows, which defect each column has, at which scale), NumPy the numbers from one
drawn seed: what fails then shrinks to a short list of words, not to a long list of numbers.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

# What a column may be. Each is a function of standard normal numbers z (n,), codes (n,) and the columns before it.
COLUMNS = {
    "noise": lambda z, codes, before: z,
    "signal": lambda z, codes, before: z + codes,
    "separated": lambda z, codes, before: 1e-6 * z + codes,
    "class": lambda z, codes, before: codes.astype(float),
    "constant": lambda z, codes, before: np.ones(len(z)),
    "zero": lambda z, codes, before: np.zeros(len(z)),
    "binary": lambda z, codes, before: (z > 0).astype(float),
    "count": lambda z, codes, before: np.floor(np.exp(2 * z)),
    "outlier": lambda z, codes, before: np.where(np.arange(len(z)) == 0, 1e12, z),
    "copy": lambda z, codes, before: before[-1] if before else z,
    "sum": lambda z, codes, before: np.sum(before, axis=0) if before else z,
    "nearly a copy": lambda z, codes, before: before[-1] * (1 + 1e-15 * z) if before else z,
}
# Powers of ten: the strategies of one table's features. Plain units lie within ±30, and there everything shall work;
# beyond ±154 a square is no double.
PLAIN_SCALES = (st.just(0), st.integers(-30, 30))
ALL_SCALES = (
    *PLAIN_SCALES,
    st.integers(-64, 46),
    st.integers(-300, 300),
    st.sampled_from([-320, -160, -65, 0, 65, 160]),
)
# How far a column lies from zero, in its own scale: from 10¹⁶ on its digits are gone.
OFFSETS = st.sampled_from([0.0, 0.0, 0.0, 1.0, -1e3, 1e8, 1e14, 1e18])
NAMES = st.sampled_from(
    ["", "a", "a", "intercept", "größe", "日本", "x\ny", "\u202e", "{x}", "<b>", "w[0]", "🙂", "a/b", " "]
)
LABELS = {
    "codes": lambda K: np.arange(K),
    "far": lambda K: np.arange(K) * 10**15 - 7,
    "words": lambda K: np.array([f"class {k:04d}" for k in range(K)]),
    "unicode": lambda K: np.array([chr(0x1F600 + k) + "\n\u202e" for k in range(K)]),
    "objects": lambda K: np.array(["", *[f"é{k:04d}" for k in range(K - 1)]], dtype=object),
    "floats": lambda K: np.arange(K, dtype=float),
}
WEIGHTS = {
    "none": lambda n, rng: None,
    "ones": lambda n, rng: np.ones(n),
    "some zero": lambda n, rng: (rng.random(n) < 0.7).astype(float),
    "mostly zero": lambda n, rng: (rng.random(n) < 0.1).astype(float),
    "all zero": lambda n, rng: np.zeros(n),
    "tiny": lambda n, rng: np.full(n, 1e-300),
    "huge": lambda n, rng: np.full(n, 1e300),
    "mixed": lambda n, rng: 10.0 ** rng.uniform(-12, 12, n),
    "wild": lambda n, rng: 10.0 ** rng.uniform(-300, 300, n),
    "fractions": lambda n, rng: rng.uniform(0, 3, n),
    "nan": lambda n, rng: np.where(np.arange(n) == 0, np.nan, 1.0),
    "negative": lambda n, rng: np.where(np.arange(n) == 0, -1.0, 1.0),
}
# The kinds of weight that are merely weights; the rest is refused, or may be.
FAIR_WEIGHTS = ("none", "ones", "some zero", "fractions")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows to learn, and rows to predict, with the words they were made from."""

    X: Any
    y: Any
    weight: Any
    new: Any
    words: tuple[Any, ...]

    @property
    def saved(self) -> bool:
        """Whether to try files as well, which take longer than all else: for one table in four."""
        return bool(self.words[9] % 4 == 0)

    def __repr__(self) -> str:
        return f"Table{self.words}"


@st.composite
def tables(
    draw,
    *,
    scales=ALL_SCALES,
    offsets=OFFSETS,
    columns=tuple(COLUMNS),
    weights=tuple(WEIGHTS),
    max_classes=6,
    wide=True,
):
    """Tables whose values are finite numbers."""
    K = draw(st.integers(2, max_classes))
    n = K + draw(st.sampled_from([0, 0, 1, 2, 5, 20, 60]))
    d = draw(st.one_of(st.integers(1, 4), st.just(n + 2)) if wide and n < 12 else st.integers(1, 4))
    kinds = draw(st.lists(st.sampled_from(columns), min_size=d, max_size=d))
    powers = draw(st.sampled_from(scales).flatmap(lambda power: st.lists(power, min_size=d, max_size=d)))
    shifts = draw(st.lists(offsets, min_size=d, max_size=d))
    repeats = draw(st.sampled_from([1, 1, 1, 3]))
    labels = draw(st.sampled_from(sorted(LABELS)))
    weighing = draw(st.one_of(st.sampled_from(FAIR_WEIGHTS), st.sampled_from(weights)))
    seed = draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])  # each class has a row
    Z = rng.standard_normal((n, d))
    made: list[np.ndarray] = []
    for j, kind in enumerate(kinds):
        made.append(COLUMNS[kind](Z[:, j], codes, made))
    with np.errstate(over="ignore", under="ignore"):
        X = np.column_stack([(x + shift) * 10.0**p for x, shift, p in zip(made, shifts, powers, strict=True)])
        X = np.clip(X, -np.finfo(float).max, np.finfo(float).max)
        # Rows like those learnt, rows between them, and rows from another world.
        spread = X.max(axis=0) / 2 - X.min(axis=0) / 2
        far = np.clip(X[:2] + 1e3 * spread, -np.finfo(float).max, np.finfo(float).max)
        new = np.concatenate([X[:3], X[:1] / 2 + X[-1:] / 2, far, np.zeros((1, d))])
    X, codes = np.repeat(X, repeats, axis=0), np.repeat(codes, repeats)
    words = (K, n, d, kinds, powers, shifts, repeats, labels, weighing, seed)
    return Table(X, LABELS[labels](K)[codes], WEIGHTS[weighing](len(X), rng), new, words)


def _as_frame(table: Table, names: list[Any]) -> Table:
    return replace(
        table,
        X=pd.DataFrame(table.X, columns=names),
        new=pd.DataFrame(table.new, columns=names),
        y=pd.Series(table.y),
        words=(*table.words, names),
    )


def _mixed_frame(table: Table) -> Table:
    """The dtypes that a data frame may have side by side."""
    kinds = ["float64", "float32", "int64", "bool", "object", "Float64", "category"]
    out = _as_frame(table, [f"c{j}" for j in range(table.X.shape[1])])
    for X in (out.X, out.new):
        for j, name in enumerate(list(X.columns)):
            kind = kinds[j % len(kinds)]
            values = X[name].clip(-1e15, 1e15) if kind in ("int64", "float32") else X[name]
            X[name] = values.astype(kind)
    return out


def _with_hole(value: float):
    def spoil(table: Table) -> Table:
        X = table.X.copy()
        X[len(X) // 2, -1] = value
        return replace(table, X=X, words=(*table.words, value))

    return spoil


FORMS = {
    "lists": lambda t: replace(t, X=t.X.tolist(), y=t.y.tolist(), new=t.new.tolist()),
    "objects": lambda t: replace(t, X=t.X.astype(object), new=t.new.astype(object)),
    "float32": lambda t: replace(t, X=t.X.clip(-3e38, 3e38).astype(np.float32)),
    "integers": lambda t: replace(t, X=t.X.clip(-9e15, 9e15).astype(np.int64)),
    "booleans": lambda t: replace(t, X=t.X > 0, new=t.new > 0),
    "text": lambda t: replace(t, X=t.X.astype(str)),
    "words": lambda t: replace(t, X=np.full(t.X.shape, "a")),
    "complex": lambda t: replace(t, X=t.X + 1j),
    "fortran": lambda t: replace(t, X=np.asfortranarray(t.X)),
    "read-only": lambda t: replace(t, X=np.broadcast_to(t.X[:1], t.X.shape)),
    "one row": lambda t: replace(t, X=t.X[:1], y=t.y[:1], weight=None),
    "no rows": lambda t: replace(t, X=t.X[:0], y=t.y[:0], weight=None),
    "no columns": lambda t: replace(t, X=t.X[:, :0]),
    "a vector": lambda t: replace(t, X=t.X[:, 0]),
    "short y": lambda t: replace(t, y=t.y[:-1]),
    "one class": lambda t: replace(t, y=np.repeat(t.y[:1], len(t.y))),
    "no numbers in y": lambda t: replace(t, y=np.linspace(0, 1.5, len(t.y))),
    "nan in y": lambda t: replace(t, y=np.where(np.arange(len(t.y)) == 0, np.nan, 1.0)),
    "two columns of y": lambda t: replace(t, y=np.column_stack([t.y, t.y])),
    "none in y": lambda t: replace(t, y=np.array([None, *t.y[1:]], dtype=object)),
    "mixed y": lambda t: replace(t, y=np.array([1, *map(str, t.y[1:])], dtype=object)),
    "short weights": lambda t: replace(t, weight=np.ones(len(t.X) + 1)),
    "words as weights": lambda t: replace(t, weight=np.full(len(t.X), "a")),
    "inf": _with_hole(np.inf),
    "mixed frame": _mixed_frame,
    "numbered frame": lambda t: _as_frame(t, list(range(t.X.shape[1]))),
}


@st.composite
def formed_tables(draw, **options):
    """The same in another form: lists, frames with odd names, other dtypes, infinite values, wrong shapes."""
    table = draw(tables(**options))
    form = draw(st.sampled_from(["named frame", *FORMS]))
    if form == "named frame":
        d = table.X.shape[1]
        return _as_frame(table, draw(st.lists(NAMES, min_size=d, max_size=d)))
    made = FORMS[form](table)
    return replace(made, words=(*made.words, form))


def tables_with_gaps(**options):
    """Tables in which a value is missing."""
    return tables(**options).map(_with_hole(np.nan))
