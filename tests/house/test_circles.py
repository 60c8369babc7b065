"""No module reaches itself through what it imports: also inside functions, for types, and by "module:name" strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import loupe

PACKAGE = Path(loupe.__file__).parent
#: Modules that are still in a circle. The number may only become smaller.
LEFT = 11
#: What the packages below may use of `loupe` itself, which offers the names of `loupe.api` and is above all.
OF_THE_FACE = {"__version__", "__file__", "__path__"}
PLACE = re.compile(r"loupe(\.\w+)+(:\w+)?")


def modules() -> dict[str, ast.Module]:
    found = {}
    for file in PACKAGE.rglob("*.py"):
        parts = ("loupe", *file.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(file.read_text())
    return found


MODULES = modules()


def named(tree: ast.Module) -> Iterator[str]:
    """Everything of ours that a module names: `loupe.x`, or `loupe.x.name` if a name is imported from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole module"
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACE.fullmatch(node.value):
            yield node.value.partition(":")[0]


def reached(name: str) -> str:
    """The module that holds a name; "" if it is none of ours."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def graph() -> dict[str, set[str]]:
    """Every module with those that it reaches, the face (`loupe` itself) left out."""
    return {
        module: {reached(name) for name in named(tree)} - {module, "loupe", ""}
        for module, tree in MODULES.items()
        if module != "loupe"
    }


def circles(reaches: Mapping[str, set[str]]) -> list[list[str]]:
    """Circles that share no edge, one after another, until none is left."""
    left, found = {module: set(others) for module, others in reaches.items()}, []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            circle: list[str] = error.args[1]
            found.append(circle)
            for after, before in pairwise(circle):
                left[before].discard(after)
        else:
            return found


def test_no_module_reaches_itself() -> None:
    found = circles(graph())
    shown = "\n".join(" -> ".join(circle) for circle in found)
    assert len({module for circle in found for module in circle}) <= LEFT, shown


def test_nothing_reaches_the_api_through_the_face() -> None:
    for module, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "loupe":
                names = {each.name for each in node.names}
                assert all(f"loupe.{name}" in MODULES or name in OF_THE_FACE for name in names), module
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "loupe":
                assert node.attr in OF_THE_FACE or f"loupe.{node.attr}" in MODULES, f"{module}: loupe.{node.attr}"


def test_a_circle_by_a_string_or_a_type_is_seen() -> None:
    tree = ast.parse("if TYPE_CHECKING:\n    from loupe.types import Result\ndef f():\n    import loupe.errors\n")
    assert {reached(name) for name in named(tree)} == {"loupe.types", "loupe.errors", ""} - {""}
    assert {reached(name) for name in named(ast.parse('X = "loupe.api.runs:Run"\nY = "loupe|x"'))} == {"loupe.api.runs"}
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) and not circles({"a": {"b"}, "b": set()})
