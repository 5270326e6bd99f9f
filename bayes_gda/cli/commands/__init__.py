"""The commands: what `--help` shows, in the order of these imports, and the way from arguments to calls."""

from bayes_gda.cli.commands import fitting, saved, sources
from bayes_gda.cli.commands.app import app

__all__ = ["app", "fitting", "saved", "sources"]
