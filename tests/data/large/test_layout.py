"""Plan, survey and layout: whatever the parts of a table are, they become the same rows, and their sums add."""

import threading
import time
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_gda.data.large import layout as layouts
from bayes_gda.data.large.layout import Encoded, RawType, Sampling, Survey, add, make_plan, total
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError

NUMERIC, BOOLEAN, TEXT = RawType("numeric", "double"), RawType("boolean", "bool"), RawType("text", "string")
DATE = RawType("none", "timestamp[ns]")
COLUMNS = [("length", NUMERIC), ("island", TEXT), ("ringed", BOOLEAN), ("species", TEXT), ("zone", NUMERIC)]


def birds(n=60, *, gaps=False):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(
        {
            "length": rng.normal(size=n),
            "island": rng.choice(["Torgersen", "Biscoe", "Dream"], n),
            "ringed": rng.random(n) < 0.5,
            "species": np.array(["gentoo", "adelie"])[rng.integers(0, 2, n)],
            "zone": rng.integers(1, 4, n).astype(float),
        }
    )
    if gaps:
        df.loc[::7, "length"] = np.nan
        df.loc[3::11, "island"] = None
        df.loc[[5, 41], "species"] = None
    return df


def cut(df, ends):
    """Return consecutive parts of a table, some of them perhaps empty."""
    edges = [0, *sorted(ends), len(df)]
    return [df[a:b] for a, b in pairwise(edges)]


def lay_out(df, parts=None, **options):
    """Return the layout that a survey of all parts finds."""
    plan = make_plan(COLUMNS, "species", **options)
    survey = Survey(tuple(plan.surveyed))
    return plan.layout(total(parts or [df], survey))


CUTS = st.lists(st.integers(0, 60), max_size=6)


# ── Plan ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_columns_of_numbers_are_not_surveyed_unless_they_are_categorical():
    plan = make_plan(COLUMNS, "species", categorical=["zone"], drop=["ringed"])
    assert plan.surveyed == ["species", "island", "zone"]
    assert plan.columns == ["species", "length", "island", "zone"]
    assert make_plan(COLUMNS, "species").surveyed == ["species", "island"]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (COLUMNS, {"drop": "zone"}, r"`drop` must be a list of columns; got 'zone'\. Use \['zone'\]\."),
        (COLUMNS, {"drop": ["zon"]}, r"`drop` names no column: 'zon'\. Did you mean 'zone'\?"),
        (COLUMNS, {"drop": ["species"]}, "`drop` names the target 'species'"),
        (COLUMNS, {"categorical": ["zone"], "drop": ["zone"]}, "`categorical` names 'zone', which is no column"),
        (COLUMNS, {"missing": "keep"}, '`missing` must be "error" or "drop" .* got \'keep\''),
        ([("species", TEXT)], {}, "no feature columns besides the target 'species'"),
        ([(0, NUMERIC), ("species", TEXT)], {}, r"Column names must be text; got 0\."),
        ([*COLUMNS, ("zone", TEXT)], {}, "Column name 'zone' appears 2 times"),
        ([*COLUMNS, ("day", DATE)], {}, r"type timestamp\[ns\] is no feature; turn 'day' into numbers or text"),
    ],
)
def test_what_is_asked_must_fit_the_columns(columns, options, message):
    with pytest.raises(DataError, match=message):
        make_plan(columns, "species", **options)


def test_a_column_of_no_use_may_be_dropped():
    assert "day" not in make_plan([*COLUMNS, ("day", DATE)], "species", drop=["day"]).columns


# ── Survey and layout ───────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=40, deadline=None)
@given(CUTS)
def test_parts_become_the_rows_of_the_whole_table(ends):
    df = birds()
    whole = Dataset.from_frame(df, target="species", categorical=["zone"])
    parts = cut(df, ends)
    layout = lay_out(df, parts, categorical=["zone"])
    assert layout == lay_out(df, categorical=["zone"])
    assert (layout.encoding, layout.class_names) == (whole.encoding, whole.class_names)
    X, y = total(parts, Encoded(layout, lambda X, y: ([X], [y])))
    np.testing.assert_array_equal(np.concatenate(X), whole.X)
    np.testing.assert_array_equal(np.concatenate(y), whole.y)


def test_levels_of_one_part_alone_are_levels_of_all():
    df = birds(20)
    df.loc[19, ["island", "species"]] = ["Anvers", "chinstrap"]
    layout = lay_out(df, cut(df, [19]))
    assert layout.class_names == ("adelie", "chinstrap", "gentoo")
    assert "island[Biscoe]" in layout.encoding.feature_names  # Anvers, which was seen last, comes first
    X, y, _ = layout.encode(df[19:], 19)
    assert y.tolist() == [1]
    assert X[0, 1:4].tolist() == [0, 0, 0]


def test_a_value_that_the_survey_did_not_see_is_refused_by_its_row():
    layout = lay_out(birds())
    later = birds(10).assign(island="Anvers")
    with pytest.raises(DataError, match=r"^Rows 61 to 70: Level 'Anvers' of column 'island' \(row 1\) is unknown"):
        layout.encode(later, 60)
    with pytest.raises(DataError, match=r"^Rows 61 to 70: Class 'emperor' of target 'species' \(row 1\) is unknown"):
        layout.encode(birds(10).assign(species="emperor"), 60)


def test_gaps_raise_or_take_their_rows_with_them():
    df = birds(gaps=True)
    whole = Dataset.from_frame(df, target="species", missing="drop")
    X, y, kept = lay_out(df, missing="drop").encode(df, 0)
    np.testing.assert_array_equal(X, whole.X)
    np.testing.assert_array_equal(y, whole.y)
    np.testing.assert_array_equal(kept, df.notna().all(axis=1))
    with pytest.raises(DataError, match=r"^Rows 1 to 60: Target 'species' is missing in 2 rows; pass missing=\"drop\""):
        lay_out(df).encode(df, 0)
    with pytest.raises(DataError, match=r"^Rows 1 to 60: Missing values in 'length' \(9\), 'island"):
        lay_out(df).encode(df.assign(species="gentoo"), 0)


@settings(max_examples=25, deadline=None)
@given(CUTS)
def test_the_rows_of_a_sample_do_not_depend_on_the_parts(ends):
    """Nor does the choice among the complete rows depend on how many rows gaps drop before them."""
    df = birds(gaps=True)
    sampling = Sampling(lay_out(df, missing="drop"), 0.4, 5)
    count, rows = total([df], sampling)
    same, parts = total(cut(df, ends), sampling)
    np.testing.assert_array_equal(count, same)
    np.testing.assert_array_equal(rows[0][0], np.concatenate([X for X, _ in parts]))
    assert count.sum() == df.notna().all(axis=1).sum()
    # Filling the gaps in adds rows to the sample, and takes none away.
    filled = total([birds()], Sampling(lay_out(birds(), missing="drop"), 0.4, 5))[1][0][0]
    assert {row.tobytes() for row in rows[0][0]} <= {row.tobytes() for row in filled}
    assert 0 < len(rows[0][0]) < len(filled) < 60


@pytest.mark.parametrize("ends", [[], [2, 5, 6]])
def test_too_many_levels_are_seen_however_they_are_spread(ends, monkeypatch):
    monkeypatch.setattr(layouts, "MAX_LEVELS", 10)
    df = pd.DataFrame({"id": [f"r{i}" for i in range(11)]})
    assert len(total(cut(df[:10], ends), Survey(("id",))).levels["id"]) == 10
    with pytest.raises(DataError, match="Column 'id' has more than 10 different values in 11 rows"):
        total(cut(df, ends), Survey(("id",)))


# ── Sums ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_adds_nothing_and_lists_keep_the_order_of_the_rows():
    parts = [(1, [10], None), None, (2, [20, 21], 5.0), (3, [], None)]
    left = add(add(add(parts[0], parts[1]), parts[2]), parts[3])
    right = add(parts[0], add(parts[1], add(parts[2], parts[3])))
    assert left == right == (6, [10, 20, 21], 5.0)
    assert add(None, None) is None


@pytest.mark.parametrize("threads", [1, 3])
def test_frames_are_added_in_their_order_however_long_each_takes(threads):
    frames = [pd.DataFrame({"x": np.arange(i, i + 2)}) for i in range(0, 20, 2)]

    def work(frame, first):
        time.sleep(0.01 if first % 4 == 0 else 0.0)  # every other frame is overtaken by the next
        return [first], [*frame["x"]]

    ticks = []
    starts, values = total(frames, work, first=100, tick=ticks.append, threads=threads)
    assert starts == list(range(100, 120, 2))
    assert values == list(range(20))
    assert ticks == list(range(102, 122, 2))


def test_no_frames_and_frames_without_rows_to_keep_have_no_sum():
    assert total([], lambda frame, first: 1) is None
    assert total([pd.DataFrame({"x": [1]})], lambda frame, first: None) is None


@pytest.mark.parametrize("threads", [1, 3])
def test_few_frames_are_held_at_a_time(threads):
    """A frame is read only when all but `threads` of those before it are done."""
    done, behind, lock = [0], [], threading.Lock()

    def frames():
        for i in range(30):
            with lock:
                behind.append(i - done[0])
            yield pd.DataFrame({"x": [i]})

    def work(frame, first):
        time.sleep(0.002)
        with lock:
            done[0] += 1
        return len(frame)

    assert total(frames(), work, threads=threads) == 30
    assert max(behind) <= threads


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_one_frame_stops_the_reading(threads):
    read = []

    def frames():
        for i in range(100):
            read.append(i)
            yield pd.DataFrame({"x": [i]})

    def work(frame, first):
        if first == 5:
            raise DataError("Row 6 is bad.")
        return 1

    with pytest.raises(DataError, match=r"Row 6 is bad\."):
        total(frames(), work, threads=threads)
    assert len(read) <= 6 + threads + 1
