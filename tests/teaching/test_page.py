"""The textbook's page: the committed one is whole and says what the functions say; the whole job runs."""

import re
from pathlib import Path

import pytest

from bayes_gda.reporting.plots import textbook
from bayes_gda.teaching import debate, hypotheses
from bayes_gda.teaching.page import EXPERIMENTS, FIGURES, TITLES, perceptron_path, write_textbook

REPORTS = Path(__file__).resolve().parents[2] / "reports"


def check(page, size):
    text = page.read_text(encoding="utf-8")
    names = [name for section in FIGURES.values() for name, _ in section]
    names += [name for name, _, drawing in EXPERIMENTS if drawing is not None]
    assert re.findall(r'<figure id="figure-(\w+)">', text) == names
    assert text.count("<img ") == len(names)
    assert all(re.findall(r'alt="([^"]*)"', text))
    bare = re.sub(r'src="[^"]*"', "", text)
    assert "https://" not in bare
    assert "nan" not in re.findall(r"[a-z]+", bare.lower())
    assert len(text) < size
    assert str(hypotheses.version_space(hypotheses.m_of_n_rules(4), hypotheses.boolean_examples())[0]) in bare
    return bare


def test_every_figure_is_on_the_page():
    listed = {name for section in FIGURES.values() for name, _ in section}
    assert listed == set(textbook.__all__)
    assert FIGURES.keys() == TITLES.keys()
    assert all(callable(getattr(debate, name)) for name, _, _ in EXPERIMENTS)


def test_the_committed_page_is_whole_and_small():
    bare = check(REPORTS / "textbook" / "index.html", 2e6)
    # Every counterexample of the table that the functions compute stands there.
    for rule in hypotheses.conjunctions(4):
        first = hypotheses.counterexamples(rule, hypotheses.boolean_examples())[0]
        assert re.search(rf"<td>{re.escape(str(rule))}</td>\s*<td class=\"num\">{first}</td>", bare)


def test_the_path_on_the_notes_three_examples_ends():
    assert "After 13 corrections every row is on its side" in perceptron_path().caption


@pytest.mark.slow
def test_the_page_can_be_written(tmp_path):
    check(write_textbook(tmp_path / "textbook", replicates=2), 2e6)
    assert not list(tmp_path.rglob("*.tmp"))
