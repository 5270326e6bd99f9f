"""What tests of whole reports share."""

from itertools import islice

import pytest

from bayes_gda.reporting.page import figures


@pytest.fixture
def one_figure(monkeypatch):
    """Draw the first figure alone: the others take most of the time, and are looked at in tests of their own."""
    drawn = figures.figures
    monkeypatch.setattr(figures, "figures", lambda analysis: islice(drawn(analysis), 1))
