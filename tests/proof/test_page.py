"""The page: the same numbers make the same page, and it says in words what the numbers say."""

import json
import re
import sys
import types

import numpy as np
import pytest
from proof import page as page_module
from proof.page import render, write_page
from proof.verdicts import Records, judge

from bayes_gda.validation.calibration import DRAWS

NAMES = ("mu[0]", "p(y=1 | x1)", "log likelihood")


def uniform(model, method, *, refused=0):
    ranks = np.random.default_rng([len(model), len(method)]).integers(DRAWS + 1, size=(300, len(NAMES)))
    return Records(model, method, "a prior", NAMES, ranks, ("drawn",) * 300 + ("no mode",) * refused)


def tree(*records):
    return {
        "schema": 1,
        "command": "make sbc",
        "seed": 1,
        "versions": {"numpy": "2.5"},
        **judge(records),
        "seconds": {"all": 120.0},
    }


@pytest.fixture(scope="module")
def numbers():
    high = uniform("lda", "laplace")
    high.ranks[:, 0] = high.ranks[:, 0] // 2  # the truth stands below the draws
    return tree(uniform("lda", "exact"), high, uniform("qda", "corrected", refused=7))


def test_right_and_wrong_are_told_apart(numbers):
    page = " ".join(render(numbers).split())
    assert "The exact posterior holds, for lda." in page
    assert "The corrected posterior holds, for qda." in page
    assert "refused some data sets with an error or a verdict: qda 7 of 307" in page
    assert "Laplace leaves the bands for 1 of 1 models" in page
    assert re.search(r"Outside the bands: lda 1 of 3, most mu\[0\] \(too high by 0\.\d\d sd", page)


def test_the_first_edition_stands_beside_what_is_held_now(numbers, monkeypatch, tmp_path):
    first = tmp_path / "first.json"
    edition = {"models": 3, "simulations": 17302, "refused": 1, "quantities": 78, "outside": 2}
    first.write_text(json.dumps({"exact": edition, "skew-modal": edition}))
    monkeypatch.setattr(page_module, "FIRST_EDITION", first)
    page = render(numbers, verdict="<p>v</p>", contamination="<p>c</p>")
    rows = re.findall(r"<tr><td>([^<]*)</td>" + r'<td class="num">([^<]*)</td>' * 6, page)
    cells = {name: cells for name, *cells in rows}
    assert cells["exact"] == ["3", "1", "17\u202f302", "300", "2 of 78", "0 of 3"]
    assert cells["corrected"] == ["–", "1", "–", "300", "–", "0 of 3"]
    assert cells["Skew-modal"] == ["3", "–", "17\u202f302", "–", "2 of 78", "–"]
    assert "The sections on the verdicts and corrupted rows are new." in page


def test_power_and_chance_are_said(numbers):
    """300 simulations of three independent quantities: the shift is the detectable one, the number outside binomial."""
    page = " ".join(render(numbers).split())
    power = numbers["power"][0]
    assert power["simulations"] == 300
    assert f'<td class="num">300</td><td class="num">{power["family"]["shift"]:.2f}</td>' in page
    assert re.search(
        r"\d of 3 leave a 95 % band of their own; if all are right, 0\.\d do on average, with an sd of", page
    )


def test_a_method_that_must_hold_and_does_not_is_red():
    wrong = uniform("lda", "mcmc")
    wrong.ranks[:, 2] = 40 + wrong.ranks[:, 2] // 5
    numbers = tree(wrong)
    assert not numbers["holds"]
    assert 'class="light red"' in render(numbers)
    assert "The sampled posterior leaves the bands." in render(numbers)
    assert "too wide" in render(numbers)


def test_it_is_reproducible_small_and_stands_alone(numbers):
    page = render(numbers)
    assert page == render(json.loads(json.dumps(numbers)))
    assert not re.search(r"(src|href)=\"(?!#|data:)", page)
    assert page.count("<svg") == 3
    assert len(page) < 40_000
    assert "prefers-color-scheme: dark" in page


def test_curves_stay_within_their_plot(numbers):
    for view, body in re.findall(r'viewBox="0 0 (\d+ \d+)"[^>]*>(.*?)</svg>', render(numbers), flags=re.DOTALL):
        width, height = map(int, view.split())
        for start in re.findall(r"M(\d+) (\d+)l([^MLz\"]*)", body):
            steps = np.array(re.findall(r"-?\d+", start[2]), dtype=int).reshape(-1, 2)
            points = np.array(start[:2], dtype=int) + np.cumsum(steps, axis=0)
            assert (points >= 0).all()
            assert (points <= [width, height]).all()


def test_parts_without_numbers_are_left_out(tmp_path, numbers, monkeypatch):
    (tmp_path / "sbc.json").write_text(json.dumps(numbers), encoding="utf-8")
    page = write_page(tmp_path).read_text(encoding="utf-8")
    assert 'id="sbc"' in page
    assert 'id="calibration"' not in page
    module = types.ModuleType("proof.calibration_section")
    module.section = lambda data: f"<h2>{data['title']}</h2>"
    monkeypatch.setitem(sys.modules, "proof.calibration_section", module)
    (tmp_path / "sbc.json").unlink()
    (tmp_path / "calibration.json").write_text('{"title": "Real data"}', encoding="utf-8")
    page = write_page(tmp_path).read_text(encoding="utf-8")
    assert "<h2>Real data</h2>" in page
    assert 'id="sbc"' not in page
