"""What is stated of single rows against long sampling, on a few cases; the study itself takes minutes."""

import numpy as np
import pytest
from proof import row_study, verdict_study


def test_stated_errors_bound_the_true_ones_on_small_cases(capsys, monkeypatch):
    monkeypatch.setattr(verdict_study, "ROWS", (20, 60))
    monkeypatch.setattr(verdict_study, "FEATURES", (1, 4))
    row_study.main(["--cases", "3", "--seconds", "0.3", "--first", "7000"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("3 cases")
    assert [line.split(":")[0] for line in lines[1:]] == list(verdict_study.GROUPS)
    assert all("beyond it in 0;" in line and "0 of them falsely" in line for line in lines[1:])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(7010, 7030))
def test_stated_errors_bound_the_true_ones(seed):
    rows = row_study.judge_rows(seed, 2.0)
    if rows is None:
        pytest.skip("EP did not converge, or the truth is not known")
    _, laplace, ep, stated_laplace, stated_ep, _ = rows.T
    assert (laplace <= np.maximum(stated_laplace, row_study.SMALL)).all()
    assert (ep <= np.maximum(stated_ep, row_study.SMALL)).all()
