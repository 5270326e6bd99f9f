"""A conclusion, and how numbers and names are written in one."""

from dataclasses import dataclass
from typing import Literal

Light = Literal["green", "amber", "red"]


@dataclass(frozen=True, slots=True)
class Conclusion:
    """One finding.

    Parameters
    ----------
    topic
        The question that it answers.
    light
        `green`: nothing to do; `amber`: read before use; `red`: act first.
    sentence, step
        What was found; what to do.
    call
        The exact next call, Python or command line; empty only if nothing needs doing.
    """

    topic: str
    light: Light
    sentence: str
    step: str
    call: str = ""


def percent(share: float) -> str:
    """Write a share as a percentage."""
    return f"{100 * share:.1f} %"


def signed(value: float, digits: int = 3) -> str:
    """Write a number with a true minus sign."""
    text = f"{value:.{digits}f}"
    return (text.removeprefix("-") if float(text) == 0 else text).replace("-", "\u2212")


def listed_names(names: list[str]) -> str:
    """Write names as a list in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def short_name(name: object) -> str:
    """Write a name of the user's in a sentence: in one line, and cut if it is long."""
    from bayes_gda.reporting.plots.style import plain  # brings matplotlib with it

    return plain(name, 40)


def significant(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits, and without an exponent unless it is very large or small."""
    text = f"{value:.{digits}g}"
    if "e" in text and 1e3 <= abs(value) < 1e6:
        text = f"{float(text):,.0f}".replace(",", "\u202f" if abs(value) >= 1e4 else "")
    return text.replace("-", "\u2212")


def in_sentence(title: str) -> str:
    """Write a title inside a sentence: `naive Bayes for mixed columns`."""
    return title[:1].lower() + title[1:]


def p_text(p: float) -> str:
    """Write a p-value: `p = 0.012`, or `p < 0.001`, as no test is sure to 0.000."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
