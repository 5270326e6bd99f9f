"""The faults of `make mutants` are what they say they are, and its lists name what is there."""

import ast
import sys
import types

import pytest
from mutants.__main__ import read_reasons
from mutants.in_place import exchange
from mutants.named import NAMED
from mutants.operators import find_mutants, mutate
from mutants.running import ROOT, in_child
from mutants.subjects import SUBJECTS

SOURCE = '''
"""Text 1 + 1."""
LIMIT = 0.5
def f(x: int = 3, *, whole: "1 + 2" = True) -> "3 + 4":
    if not x < 2 and x.max() > -1:
        raise ValueError(f"{x + 1}")
    return x ** 2 if whole else x + 1
'''


def test_each_fault_changes_one_thing():
    found = {(m.place, m.before, m.after) for m in find_mutants("m.py", SOURCE)}
    assert found == {
        ("", "0.5", "5.0"),
        ("f", "3", "4"),
        ("f", "True", "False"),
        ("f", "not x < 2 and x.max() > -1", "not x < 2 or x.max() > -1"),
        ("f", "not x < 2", "not not x < 2"),
        ("f", "x < 2", "x >= 2"),
        ("f", "2", "3"),
        ("f", "x.max() > -1", "x.max() <= -1"),
        ("f", "x.max()", "x.min()"),
        ("f", "-1", "+1"),
        ("f", "1", "2"),
        ("f", "x ** 2", "x * 2"),
        ("f", "x + 1", "x - 1"),
    }


def test_a_fault_is_put_in_where_it_was_found():
    whole = ast.unparse(ast.parse(SOURCE))
    seen = set()
    for mutant in find_mutants("m.py", SOURCE):
        wrong = ast.unparse(mutate(SOURCE, mutant.number))
        assert wrong != whole
        assert mutant.after in wrong
        seen.add(wrong)
        compile(mutate(SOURCE, mutant.number), "m.py", "exec")
    assert len(seen) == len(find_mutants("m.py", SOURCE))


def test_names_and_lots_do_not_depend_on_what_stands_above():
    before = {m.name: m.lot for m in find_mutants("m.py", SOURCE)}
    after = {m.name: m.lot for m in find_mutants("m.py", "import os\n\n" + SOURCE)}
    assert before == after
    assert all(0 <= lot < 1 for lot in before.values())


def test_a_child_that_hangs_is_ended(tmp_path):
    assert in_child(lambda: 3, tmp_path / "log", 20)[0] == "3"

    def hang():
        while True:
            pass

    assert in_child(hang, tmp_path / "log", 0.3)[0] == "timeout"


@pytest.mark.parametrize("fault", NAMED, ids=lambda fault: fault.name[:60])
def test_faults_by_hand_fit_the_code(fault):
    assert (ROOT / fault.module).read_text(encoding="utf-8").count(fault.before) >= 1
    assert fault.before != fault.after
    assert all((ROOT / name).exists() for name in fault.tests)


def test_subjects_and_their_tests_are_there():
    for module, tests in SUBJECTS.items():
        assert (ROOT / module).is_file()
        assert all((ROOT / name).exists() for name in tests), module


def test_survivors_with_a_reason_are_faults_of_the_code_as_it_is():
    """A reason that no fault needs any more is taken out."""
    reasons = read_reasons()
    known = {m.name for module in SUBJECTS for m in find_mutants(module, (ROOT / module).read_text(encoding="utf-8"))}
    known |= {fault.name for fault in NAMED}
    assert [name for name in reasons if name not in known] == []
    assert all(len(reason) > 10 for reason in reasons.values())


IN_PLACE = """
LIMIT = 3.0
OTHER = 1
TWICE = [OTHER * 2]
def f(x, y=8):
    return x + LIMIT
class A:
    n: int = 4
    def g(self):
        return 5
    @property
    def h(self):
        return 6
    @classmethod
    def k(cls):
        return 7
"""


@pytest.mark.parametrize(
    ("before", "possible"),
    [
        ("3.0", True), ("1", False), ("2", True), ("8", True), ("x + LIMIT", True), ("4", False), ("5", True),
        ("6", True), ("7", True),
    ],
)  # fmt: skip
def test_a_fault_is_exchanged_where_it_stands_or_not_at_all(before, possible, monkeypatch):
    module = types.ModuleType("bayes_gda.invented")
    module.__file__ = str(ROOT / "bayes_gda/invented.py")
    exec(IN_PLACE, vars(module))
    monkeypatch.setitem(sys.modules, "bayes_gda.invented", module)
    f, a = module.f, module.A()

    def values():
        return [module.LIMIT, module.OTHER, module.TWICE, f.__defaults__, f(1.0), a.g(), a.h, a.k(), a.n]

    whole = values()
    mutant = next(m for m in find_mutants("bayes_gda/invented.py", IN_PLACE) if m.before == before)
    assert exchange(mutant.module, mutate(IN_PLACE, mutant.number), mutant.number[0]) == possible
    assert (values() != whole) == possible
