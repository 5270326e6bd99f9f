"""Small faults of a module: signs, operators, conditions and numbers, each changed alone.

    a + b ↔ a − b,   a · b ↔ a / b,   a ** b → a · b,   −a → a,   not a → a,   a and b ↔ a or b
    <, ≤, =, ∈ … → their opposites,   max ↔ min,   any ↔ all,   True ↔ False
    an integer n → n + 1,   a real x → 2x, 0 → 1
    in a constant of the module: a real x → 10x, an integer from 10 on → a tenth

Twice a tolerance or a number of draws is as good a choice as any; ten times the tolerance or a tenth of the draws is
another one.

The boundary of a comparison (< for ≤) is left alone, since between real numbers it hardly ever matters. So are texts,
types, messages of errors, decorators and assertions.
"""

import ast
import copy
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
_NAMES = {"max": "min", "min": "max", "any": "all", "all": "any", "maximum": "minimum", "minimum": "maximum"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault.

    Parameters
    ----------
    module
        Path of the module, from the top of the repository.
    line
        Where it is now.
    place
        The function or class around it.
    before, after
        The expression, right and wrong.
    nth
        Which of the equal ones in that place it is, from 0.
    number
        Which node of the tree, and which of its faults.
    """

    module: str
    line: int
    place: str
    before: str
    after: str
    nth: int
    number: tuple[int, int]

    @property
    def name(self) -> str:
        """What it is known by, whatever is added to the module elsewhere."""
        return f"{self.module} {self.place}: {self.before} -> {self.after} #{self.nth}"

    @property
    def lot(self) -> float:
        """A number between 0 and 1 that is always the same, by which samples are drawn."""
        return int(hashlib.sha256(self.name.encode()).hexdigest()[:12], 16) / 16**12


def find_mutants(module: str, source: str) -> list[Mutant]:
    """Return all faults of a module, in the order of its lines."""
    tree = ast.parse(source)
    left_alone, places, constants = _left_alone(tree), _places(tree), _constants(tree)
    out: list[Mutant] = []
    seen: dict[tuple[str, str, str], int] = {}
    for i, node in enumerate(ast.walk(tree)):
        if id(node) in left_alone:
            continue
        for j, fault in enumerate(_faults(node, id(node) in constants)):
            wrong = copy.deepcopy(node)
            fault(wrong)
            key = (places.get(id(node), ""), _text(node), _text(wrong))
            nth = seen[key] = seen.get(key, -1) + 1
            out.append(Mutant(module, getattr(node, "lineno", 0), *key, nth, (i, j)))
    return sorted(out, key=lambda mutant: (mutant.line, mutant.number))


def mutate(source: str, number: tuple[int, int]) -> ast.Module:
    """Return the tree of a module with one fault in it; line numbers are those of the source."""
    tree = ast.parse(source)
    i, j = number
    node = next(node for at, node in enumerate(ast.walk(tree)) if at == i)
    list(_faults(node, id(node) in _constants(tree)))[j](node)
    return tree


def _faults(node: ast.AST, constant: bool) -> Iterator[Callable[[ast.AST], None]]:
    """Yield what changes a node of this kind in place; `constant` where it belongs to a constant of the module."""
    match node:
        case ast.Compare(ops=ops):
            for k, op in enumerate(ops):
                if type(op) in _OPPOSITE:
                    yield lambda x, k=k, op=op: x.ops.__setitem__(k, _OPPOSITE[type(op)]())
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _ARITHMETIC:
            yield lambda x: setattr(x, "op", _ARITHMETIC[type(op)]())
        case ast.UnaryOp(op=ast.USub()):
            yield lambda x: setattr(x, "op", ast.UAdd())
        case ast.UnaryOp(op=ast.Not()):
            yield lambda x: setattr(x, "operand", ast.copy_location(ast.UnaryOp(ast.Not(), x.operand), x))  # not not a
        case ast.BoolOp(op=op):
            yield lambda x: setattr(x, "op", ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.Constant(value=bool(value)):
            yield lambda x: setattr(x, "value", not value)
        case ast.Constant(value=int(value)):
            yield lambda x: setattr(x, "value", value // 10 if constant and value >= 10 else value + 1)
        case ast.Constant(value=float(value)):
            yield lambda x: setattr(x, "value", (10 if constant else 2) * value or 1.0)
        case ast.Call(func=ast.Attribute(attr=name)) if name in _NAMES:
            yield lambda x: setattr(x.func, "attr", _NAMES[name])
        case ast.Call(func=ast.Name(id=name)) if name in _NAMES:
            yield lambda x: setattr(x.func, "id", _NAMES[name])


def _text(node: ast.AST) -> str:
    return ast.unparse(node)[:100]


def _left_alone(tree: ast.Module) -> set[int]:
    """Return the ids of nodes in which no fault is put: types, texts, errors, assertions, checks of memory."""
    out: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        match node:
            case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.TypeAlias() | ast.Import() | ast.ImportFrom():
                parts = [node]
            case ast.FunctionDef():
                parts = [node.returns, *node.decorator_list]
            case ast.ClassDef():
                parts = [*node.decorator_list, *node.bases]
            case ast.arg() | ast.AnnAssign():
                parts = [node.annotation]
            case ast.keyword(arg="strict" | "repr" | "copy"):  # an assertion of zip, what is printed, memory
                parts = [node]
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                parts = [node]
            case ast.Call(func=ast.Name(id="require_memory" | "cast" | "TypeVar")):
                parts = [node]
        out.update(id(x) for part in parts if part is not None for x in ast.walk(part))
    return out


def _constants(tree: ast.Module) -> set[int]:
    """Return the ids of the nodes in assignments at the top of the module."""
    return {id(x) for node in tree.body if isinstance(node, ast.Assign) for x in ast.walk(node.value)}


def _places(tree: ast.Module) -> dict[int, str]:
    """Return the qualified name of the function or class around each node, by its id."""
    out: dict[int, str] = {}

    def visit(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}".lstrip(".")
            out[id(child)] = inner
            visit(child, inner)

    visit(tree, "")
    return out
