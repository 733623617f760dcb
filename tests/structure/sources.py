"""kemu's source as data: modules, what they import, what they define.

Every check of this folder is a function of a folder and returns what is wrong, as lines; so each
can be run on a small folder made for the purpose, to show that it is able to fail.
"""

import ast
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "kemu"

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """``importer`` imports ``target`` (a dotted name; of a ``from`` import the submodule if it is
    one, else the module)."""

    importer: str
    target: str
    line: int
    name: str = ""

    def __str__(self):
        return f"{self.importer}:{self.line} imports {self.target}"


@dataclass(frozen=True)
class Module:
    """One file: its dotted name, its place, its text."""

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self):
        return ast.parse(self.text, filename=str(self.path))

    @property
    def is_package(self):
        return self.path.name == "__init__.py"

    @property
    def functions(self):
        return [node for node in ast.walk(self.tree) if isinstance(node, FunctionNode)]

    def absolute(self, node):
        """The dotted module that ``from X import ...`` means by X, dots resolved."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        parts = parts[: len(parts) - node.level + self.is_package]
        return ".".join(parts + ([node.module] if node.module else []))


@lru_cache
def modules(package=PACKAGE):
    """All modules under the folder ``package``, by dotted name. An empty folder is an error: there
    is nothing to check."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path, path.read_text(encoding="utf-8"))
    if not found:
        raise AssertionError(f"no Python files under {package}")
    return found


def imports(package=PACKAGE):
    """Every import statement anywhere in a module, inside functions and under ``if TYPE_CHECKING``
    too."""
    known = modules(package)
    return [found for module in known.values() for found in _imports_of(module, known)]


def _imports_of(module, known):
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module.name, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = module.absolute(node)
            for alias in node.names:
                sub = f"{base}.{alias.name}"
                yield Import(module.name, sub if sub in known else base, node.lineno, alias.name)
