"""A fault put into a module that is imported already: the quick way.

A process imports the package and collects the tests of a module once. For each fault it makes a copy of itself, in
which the code, the default or the constant is exchanged where it stands, so that whoever has imported the function or
the number has the wrong one. That takes hundredths of a second, where a new process takes one.

What cannot be exchanged so (fields of classes, constants of which others are made) is left to a process of its own. So
are, once more, constants that have survived, and functions that were called while the tests were collected: a test may
have its figures from there.
"""

import ast
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType, FunctionType

import pytest
from mutants.operators import Mutant, mutate
from mutants.running import QUIET, ROOT, ending, in_child

# How a copy ends that could not exchange its fault.
ELSEWHERE = 77
# Faults with the names of the tests that see each, in their order, and the seconds that they may take.
type Jobs = Iterator[tuple[Mutant, list[str], float]]
# Called with a fault, how its tests ended ("survived": they passed; "": unknown) and the seconds.
type Done = Callable[[Mutant, str, float], None]


def run_in_place(module: str, source: str, tests: Sequence[str], faults: Jobs, done: Done, log: Path) -> int:
    """Collect tests in this process, then try faults in copies of it; to be called in a child.

    Parameters
    ----------
    module, source
        The module and its text.
    tests
        What to collect.
    faults
        The faults to try.
    done
        Takes what came of each.
    log
        Where the copies write.
    """
    called: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == str(ROOT / module):
            called.add(frame.f_code.co_qualname.replace(".<locals>", ""))

    class Loop:
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            sys.setprofile(None)
            items = {item.nodeid: item for item in session.items}
            for mutant, names, limit in faults:
                chosen = [items[name] for name in names if name in items]
                how, seconds = in_child(lambda m=mutant, c=chosen: _try(m, source, session, c), log, limit)
                again = how == str(ELSEWHERE) or (how == "0" and (not mutant.place or mutant.place in called))
                done(mutant, "" if again else ending(how), seconds)
            return True

    os.chdir(ROOT)
    sys.setprofile(watch)
    return int(pytest.main([*QUIET, *tests], plugins=[Loop()]))


def _try(mutant: Mutant, source: str, session: pytest.Session, items: list[pytest.Item]) -> int:
    if not exchange(mutant.module, mutate(source, mutant.number), mutant.number[0]):
        return ELSEWHERE
    for item, after in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return 1
    return 0


def exchange(module: str, tree: ast.Module, number: int) -> bool:
    """Put the fault in the `number`-th node of `tree` into the imported module; return whether that can be done."""
    fault = next(node for at, node in enumerate(ast.walk(tree)) if at == number)
    top = next((node for node in tree.body if _holds(node, fault)), None)
    name = module.removesuffix(".py").replace("/", ".")
    old = sys.modules.get(name)
    if old is None or top is None:
        return False
    new = {"__name__": name, "__file__": str(ROOT / module), "__package__": name.rpartition(".")[0]}
    try:
        exec(compile(tree, str(ROOT / module), "exec"), new)
    except Exception:
        return False  # a process of its own says what happens on import
    match top:
        case ast.FunctionDef():
            return _exchange_function(vars(old).get(top.name), new.get(top.name))
        case ast.ClassDef():
            inner = next((node for node in top.body if _holds(node, fault)), None)
            names = [node.name for node in top.body if isinstance(node, ast.FunctionDef)]
            if not isinstance(inner, ast.FunctionDef) or names.count(inner.name) > 1:
                return False
            return _exchange_function(vars(vars(old)[top.name]).get(inner.name), vars(new[top.name]).get(inner.name))
        case ast.Assign(targets=targets) if all(isinstance(node, ast.Name | ast.Tuple) for node in targets):
            constants = {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
            if constants & set(_used_on_import(tree)):
                return False
            for constant in constants:
                _exchange_constant(constant, vars(old)[constant], new[constant])
            return True
    return False


def _holds(node: ast.AST, part: ast.AST) -> bool:
    return any(x is part for x in ast.walk(node))


def _function(thing: object) -> object:
    match thing:
        case property(fget=inner) | classmethod(__func__=inner) | staticmethod(__func__=inner):
            return _function(inner)
        case functools.cached_property(func=inner):
            return _function(inner)
    return inspect.unwrap(thing) if callable(thing) else thing


def _exchange_function(old: object, new: object) -> bool:
    if isinstance(old, property) and (old.fset is not None or old.fdel is not None):
        return False
    f, g = _function(old), _function(new)
    if not (isinstance(f, FunctionType) and isinstance(g, FunctionType)):
        return False
    if f.__code__.co_freevars != g.__code__.co_freevars:
        return False
    f.__code__, f.__defaults__, f.__kwdefaults__ = g.__code__, g.__defaults__, g.__kwdefaults__
    if hasattr(old, "cache_clear"):
        old.cache_clear()
    return True


def _exchange_constant(name: str, old: object, new: object) -> None:
    for module in [*sys.modules.values()]:
        if str(getattr(module, "__file__", None)).startswith(str(ROOT)) and vars(module).get(name) is old:
            setattr(module, name, new)


def _used_on_import(tree: ast.Module) -> Iterator[str]:
    """Yield the names that are looked up while the module is imported."""

    def visit(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        body = node.body if isinstance(node, ast.FunctionDef | ast.Lambda) else []
        inside = {id(x) for x in (body if isinstance(body, list) else [body])}
        for child in ast.iter_child_nodes(node):
            if id(child) not in inside:
                yield from visit(child)

    yield from visit(tree)
