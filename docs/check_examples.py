"""Run the examples of the reference as doctests, and see that every name of the reference has one; part of `make docs`.

Warnings are errors, as in the tests.
"""

import doctest
import sys
import warnings
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

HOMES = ("bayes_gda", "bayes_gda.baselines", "bayes_gda.reporting.plots", "bayes_gda.validation")
REFERENCE = Path(__file__).parent / "reference"
FURTHER = REFERENCE / "examples.txt"


def further_examples() -> dict[str, str]:
    """Return the examples of `examples.txt` by full name, indented as they stand there."""
    out: dict[str, str] = {}
    name = ""
    for line in FURTHER.read_text(encoding="utf-8").splitlines():
        if line.startswith("bayes_gda."):
            name = line
        elif name:
            out[name] = out.get(name, "") + line + "\n"
    return out


def listed_names() -> list[str]:
    """Return the full names that the reference lists."""
    module, found = "", []
    for line in (REFERENCE / "index.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif line.startswith("   ") and line.strip().replace(".", "").isidentifier():
            found.append(f"{module}.{line.strip()}")
    return found


def public_names() -> dict[str, object]:
    """Return every public name that is a class or a function, by its full name."""
    names = [f"{home}.{name}" for home in HOMES for name in import_module(home).__all__] + listed_names()
    values = {name: resolve_name(name) for name in names}
    return {name: value for name, value in values.items() if callable(value)}


def main() -> int:
    """Run all examples; return 1 if one fails or a name has none."""
    further, failures, examples = further_examples(), [], 0
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for name, value in public_names().items():
        text = (getattr(value, "__doc__", None) or "") + "\n" + further.get(name, "")
        test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
        if not test.examples:
            failures.append(f"{name} has no example")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # PyMC 6.3 imports from PyTensor's old place.
            warnings.filterwarnings("ignore", message="Importing '.*' from 'pytensor", category=DeprecationWarning)
            result = runner.run(test)
        examples += result.attempted
        if result.failed:
            failures.append(f"{name}: {result.failed} of {result.attempted} lines fail")
    failures += [f"{name} is not public" for name in further if name not in public_names()]
    print(f"{examples} lines of examples of {len(public_names())} public names")
    print(*failures, sep="\n", end="\n" if failures else "")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
