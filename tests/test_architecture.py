"""The rules of the house: data flow one way, heavy imports stay in their rooms, and public names are all there."""

import ast
from pathlib import Path

import pytest

import bayes_gda

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "bayes_gda"

# The stations, in the order of the flow. A module belongs to the first entry that its dotted name starts with.
STATIONS = [
    ("_version", "errors", "extras", "missing", "checks", "linalg", "memory", "processes", "display"),
    ("data",),
    ("priors",),
    ("models",),
    ("prediction",),
    ("methods",),
    ("families",),
    ("evaluation",),
    ("reporting",),
    ("baselines", "estimators", "store", "cli", "teaching", "validation", ""),  # the doors
]
DOORS = len(STATIONS) - 1
PYMC_ROOMS = ("models", "methods.nuts", "methods.adapter")
NUMPY_ONLY = (
    "data.gaps",
    "data.moments",
    "data.features",
    "evaluation.reliability",
    "evaluation.distances",
    "families.gaussian",
    "families.linear",
    "linalg",
    "methods.bridge",
    "methods.density",
    "methods.differences",
    "methods.ep",
    "methods.importance",
    "methods.laplace",
    "methods.skew",
    "prediction",
    "priors",
)
FREE_OF_HEAVY = {"numpy", "scipy", "threadpoolctl", "bayes_gda"}


def module_name(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def station(module):
    return next(
        i for i, names in enumerate(STATIONS) for name in names if (module + ".").startswith(name + ".") or name == ""
    )


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES |= {f"models.{p.stem}".removesuffix(".__init__"): p for p in sorted((ROOT / "models").glob("*.py"))}


def imports(path):
    """Every module that a file imports, wherever in it; names under TYPE_CHECKING cost nothing and do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full.removeprefix("bayes_gda.") in MODULES else node.module


def test_every_module_was_found():
    assert {"data.table", "models.lda", "families.gaussian.exact", "methods.laplace"} <= MODULES.keys()


@pytest.mark.parametrize("module", MODULES)
def test_no_import_goes_upstream(module):
    here = station(module)
    for name in imports(MODULES[module]):
        if not name.startswith("bayes_gda."):
            continue
        there = station(name.removeprefix("bayes_gda."))
        assert there <= here, f"{module} imports {name}, which stands after it"
        assert there < DOORS or here == DOORS, f"{module} imports the door {name}"


@pytest.mark.parametrize("module", MODULES)
def test_pymc_is_imported_only_in_its_rooms(module):
    heavy = {name for name in imports(MODULES[module]) if name.split(".")[0] in {"pymc", "pytensor"}}
    assert not heavy or module.startswith(PYMC_ROOMS), f"{module} imports {heavy}"


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith(NUMPY_ONLY)])
def test_the_core_needs_numpy_and_scipy_alone(module):
    import sys

    used = {name.split(".")[0] for name in imports(MODULES[module])}
    assert used - set(sys.stdlib_module_names) <= FREE_OF_HEAVY


def test_public_names_resolve_and_are_listed_once():
    for name in bayes_gda.__all__:
        assert getattr(bayes_gda, name) is not None
    assert set(bayes_gda._HOME) | {"__version__"} == set(bayes_gda.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = bayes_gda.nonsense


def test_files_hold_one_idea_each():
    """About 300 lines is the aim; nothing may grow past 400 unnoticed."""
    long = {name: n for name, path in MODULES.items() if (n := len(path.read_text().splitlines())) > 400}
    assert not long
