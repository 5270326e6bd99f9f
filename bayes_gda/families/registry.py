"""THE registry of families: every door asks here which models there are; none lists them itself."""

from importlib import import_module
from typing import TYPE_CHECKING

from bayes_gda.errors import DataError

if TYPE_CHECKING:
    from bayes_gda.families.base import Family

# Where each family lives. A new one is a line here; nothing is imported before it is asked for.
HOMES = {
    "lda": "bayes_gda.families.gaussian.family:LDA",
    "qda": "bayes_gda.families.gaussian.family:QDA",
    "naive": "bayes_gda.families.gaussian.family:Naive",
    "rda": "bayes_gda.families.gaussian.family:RDA",
    "logistic": "bayes_gda.families.linear.family:Logistic",
    "softmax": "bayes_gda.families.linear.family:Softmax",
    "student": "bayes_gda.families.student:Student",
    "mixed": "bayes_gda.families.mixed.family:Mixed",
    "mixture": "bayes_gda.families.mixture.family:Mixture",
}
_registered: dict[str, "type[Family]"] = {}


def family_names() -> tuple[str, ...]:
    """Return the names of all families, ours first."""
    return (*HOMES, *_registered)


def get_family(name: str) -> "type[Family]":
    """Return a family by its name."""
    if name in _registered:
        return _registered[name]
    if name not in HOMES:
        raise DataError(f"There is no model {name!r}; the models are {', '.join(family_names())}.")
    module, cls = HOMES[name].split(":")
    family: type[Family] = getattr(import_module(module), cls)
    return family


def register(family: "type[Family]") -> "type[Family]":
    """Add a family to the registry, so that every door knows it; usable as a decorator."""
    if family.name in HOMES:
        raise DataError(f"There is a model {family.name!r} already. Give yours another name.")
    _registered[family.name] = family
    return family


def unregister(name: str) -> None:
    """Take a family that was registered out again."""
    _registered.pop(name, None)


def default_families(K: int, *, gaps: bool = False, encoding: object = None) -> "tuple[type[Family], ...]":
    """Return the families that are fitted unless one says which: for K classes, rows with gaps, columns of a table."""
    families = (get_family(name) for name in family_names())
    wanted = (family for family in families if family.default_for(K) or family.suits(encoding))
    return tuple(family for family in wanted if family.takes_gaps or not gaps)
