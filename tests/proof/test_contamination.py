"""The contamination study in one setting, and its section of the page."""

import json

import numpy as np
from proof import contamination
from proof.contamination import FOLDER, MODELS, NUMBERS, SETTINGS, corrupt, scores, section
from proof.page import render


def test_a_share_of_rows_or_values_is_corrupted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    rows, values = corrupt(X, "rows", 0.1, rng), corrupt(X, "features", 0.1, rng)
    assert corrupt(X, "none", 0.0, rng) is X
    assert abs((rows != X).all(axis=1).mean() - 0.1) < 0.03
    assert ((rows != X).any(axis=1) == (rows != X).all(axis=1)).all()
    assert abs((values != X).mean() - 0.1) < 0.02


def test_corrupted_rows_spoil_lda_and_qda_and_not_the_robust_models():
    clean = scores("two clouds of one shape", "none", 0.0, 2)
    spoilt = scores("two clouds of one shape", "rows", 0.1, 2)
    change = {model: (spoilt[model] - clean[model]).mean(axis=0) for model in MODELS}
    assert change["LDA"][1] > 0.2
    assert change["QDA"][1] > 0.2
    assert change["Student-t, shared"][1] < 0.05
    assert change["Student-t, own"][1] < 0.05


def test_the_section_says_what_the_numbers_say():
    data = json.loads((FOLDER / NUMBERS).read_text(encoding="utf-8"))
    assert len(data["results"]) == len(contamination.TABLES) * len(SETTINGS)
    html = section(data)
    assert html.count("<tr>") == 2 * (1 + len(data["results"]))
    assert "Corrupted training rows" in render(None, contamination=html)
