"""The page that leads from the lecture notes to the code names modules, functions and tests that exist."""

import importlib
import re
from pathlib import Path

import pytest

from bayes_gda.teaching.learning import efficiency

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "notes.md").read_text(encoding="utf-8")
ROWS = [re.split(r"(?<!\\)\|", line)[1:-1] for line in PAGE.splitlines() if line.startswith(("| 0", "| all"))]
WITH_CODE = [row for row in ROWS if len(row) == 4]
NAMES = sorted({name for row in WITH_CODE for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", row[2])})
TESTS = sorted({name for row in WITH_CODE for name in re.findall(r"`([\w/]+\.py::\w+)`", row[3])})


def find(name):
    """Import the longest part of a dotted name that is a module, and look the rest up in it."""
    parts = ["bayes_gda", *name.split(".")]
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


def test_the_page_has_its_tables():
    assert len(WITH_CODE) > 60
    assert len(NAMES) > 40
    assert len(TESTS) > 40
    # Each statement has a place in the code and a test.
    for row in WITH_CODE:
        assert "`" in row[2], row
        assert "::" in row[3], row
    assert {len(row) for row in ROWS} == {2, 3, 4}  # notes and subjects, slips, statements


@pytest.mark.parametrize("name", NAMES)
def test_code_that_is_named_exists(name):
    assert find(name) is not None


@pytest.mark.parametrize("name", TESTS)
def test_tests_that_are_named_exist(name):
    file, _, test = name.partition("::")
    assert re.search(rf"^def {test}\(", (ROOT / "tests" / file).read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_the_savings_of_rows_are_efrons():
    for delta, saving in {1: 0.5, 2: 10, 3: 36, 4: 66}.items():
        assert 100 * (1 - efficiency(delta)) == pytest.approx(saving, abs=0.5)
    assert efficiency(2.81) == pytest.approx(0.7, abs=0.002)
