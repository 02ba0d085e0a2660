"""Calls in a notebook's code, read without running it: which surely run, and what is known of their arguments. Pure.

A value is known where it is written out, is a recorded parameter, or follows from these by looking it up in a literal.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard


class Call(NamedTuple):
    """A method that is called on something with a name: the arguments by place and by name, those that are known.

    `whole`: all arguments stand there, none comes out of a list or a mapping (`*more`, `**more`).
    """

    owner: str
    method: str
    places: list[Any]
    names: dict[str, Any]
    arms: list[Any] | None
    whole: bool

    def given(self, at: int, name: str) -> Any:
        """An argument by its place or its name."""
        return self.places[at] if at < len(self.places) else self.names.get(name, UNKNOWN)

    def option(self, name: str, default: Any) -> Any:
        """An argument that has a name alone, or else its default."""
        return self.names.get(name, default if self.whole else UNKNOWN)


class _Method(ast.Call):
    """A call of a method, for type checkers."""

    func: ast.Attribute  # pyright: ignore[reportIncompatibleVariableOverride]


UNKNOWN = object()
"""Stands for a value that only a run could tell."""


def statements(cell: str) -> list[ast.stmt]:
    """The statements at the top of a cell; none of one in IPython's own syntax."""
    try:
        return compile(cell, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _stores(node: ast.AST) -> TypeGuard[ast.Name]:
    """Whether it is a name that is given something, or taken away."""
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)


def known_names(bodies: Sequence[ast.stmt], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Names that are set once in all of the notebook, to what is known; a parameter has its recorded value."""
    nodes = [node for body in bodies for node in ast.walk(body)]
    stored = Counter(node.id for node in nodes if _stores(node))
    known: dict[str, Any] = {}
    for body in bodies:
        if not isinstance(body, ast.Assign) or len(body.targets) != 1:
            continue
        target, value = body.targets[0], _value(body.value, known)
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value if isinstance(target, ast.Tuple) and isinstance(value, tuple) else [value]
        if len(names) != len(values):
            continue
        for name, own in zip(names, values, strict=True):
            if isinstance(name, ast.Name) and stored[name.id] == 1:
                known[name.id] = parameters.get(name.id, own)
    return {name: value for name, value in known.items() if value is not UNKNOWN}


def draft_name(nodes: Sequence[ast.AST]) -> str | None:
    """The name that what is begun gets; None where it gets none, or the name is given to other things too."""
    names = [node.id for node in nodes if _stores(node)]
    for node in nodes:
        if isinstance(node, ast.Assign) and is_method(node.value) and node.value.func.attr == "begin":
            target = node.targets[0]
            return target.id if isinstance(target, ast.Name) and names.count(target.id) == 1 else None
    return None


def surely_run(bodies: Sequence[ast.stmt], known: Mapping[str, Any]) -> Iterator[ast.stmt]:
    """The statements that surely run, each as a whole."""
    for body in bodies:
        if isinstance(body, ast.Expr | ast.Assign | ast.AnnAssign | ast.Assert):
            yield body
        elif isinstance(body, ast.If) and (outcome := _value(body.test, known)) is not UNKNOWN:
            yield from surely_run(body.body if outcome else body.orelse, known)


def calls_in(body: ast.stmt, known: Mapping[str, Any]) -> Iterator[Call]:
    """The methods that a statement calls, without those inside of functions and loops that it makes."""
    waiting: list[ast.AST] = [body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            continue
        if isinstance(node, ast.IfExp | ast.BoolOp):  # of these a part alone may run
            continue
        waiting += ast.iter_child_nodes(node)
        if is_method(node):
            yield read_call(node, known)


def is_method(node: ast.AST) -> TypeGuard[_Method]:
    """Whether it calls a method."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def read_call(node: _Method, known: Mapping[str, Any]) -> Call:
    owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
    first = node.args[0] if node.args else None
    arms = [_value(key, known) for key in first.keys if key] if isinstance(first, ast.Dict) else None
    if isinstance(first, ast.Dict) and None in first.keys:
        arms = None
    names = {word.arg: _value(word.value, known) for word in node.keywords if word.arg}
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    places = [] if starred else [_value(argument, known) for argument in node.args]
    return Call(owner, node.func.attr, places, names, arms, not starred and all(word.arg for word in node.keywords))


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """The value of an expression, or UNKNOWN."""
    if isinstance(node, ast.Name):
        return known.get(node.id, UNKNOWN)
    if isinstance(node, ast.Subscript):
        whole, key = _value(node.value, known), _value(node.slice, known)
        try:
            return UNKNOWN if UNKNOWN in (whole, key) else whole[key]
        except (KeyError, IndexError, TypeError):
            return UNKNOWN
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
        one, other = _value(node.left, known), _value(node.comparators[0], known)
        return UNKNOWN if UNKNOWN in (one, other) else (one == other) == isinstance(node.ops[0], ast.Eq)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return UNKNOWN
