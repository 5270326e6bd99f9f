"""How a notebook shows a verdict: the one place outside reports that holds colours and HTML."""

from html import escape
from typing import Literal

Light = Literal["green", "amber", "red"]

# Traffic lights in colours that most of those who cannot tell red from green can still tell apart.
COLOURS: dict[Light, str] = {"green": "#1a7f37", "amber": "#bf8700", "red": "#cf222e"}


def verdict_html(verdict: str, reason: str, next_step: str, light: Light) -> str:
    """Return a verdict as HTML, all its text escaped."""
    dot = f'<span style="color:{COLOURS[light]}">●</span>'
    return f"<div>{dot} <b>{escape(verdict)}</b>: {escape(reason)} <i>{escape(next_step)}</i></div>"
