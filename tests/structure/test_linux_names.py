"""Every ``@linux(path)`` names a function that Linux has, in the file where Linux has it.

docs/linux-functions.tsv lists functions, macros and system calls (``sys_NAME``) of the memory
management and its surroundings, as they are in 6.12 and in 7.2: what stands in either may be named.
"""

import ast
import re
from difflib import get_close_matches

from tests.structure.sources import PACKAGE, ROOT, FunctionNode, modules

TABLE = ROOT / "docs" / "linux-functions.tsv"


def linux_functions(table=TABLE):
    """name -> the files that define it."""
    lines = table.read_text(encoding="utf-8").splitlines()
    if lines[0] != "name\tfile":
        raise AssertionError(f"{table.name}: unexpected heading {lines[0]!r}")
    known = {}
    for line in lines[1:]:
        name, file = line.split("\t")
        known.setdefault(name, set()).add(file)
    return known


def declared(package=PACKAGE):
    """(where, function name, path) of every function under ``@linux(...)``; path None where it is
    no literal."""
    return [
        (f"{module.name}:{function.lineno}", function.name, path)
        for module in modules(package).values()
        for function in module.functions
        for path in _linux_paths(function)
    ]


def _linux_paths(function: FunctionNode):
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        called = decorator.func
        name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", None)
        if name == "linux":
            argument = decorator.args[0] if decorator.args else None
            yield argument.value if isinstance(argument, ast.Constant) else None


def unknown(package=PACKAGE, table=TABLE):
    """One line for each declaration that the table does not confirm, with the nearest thing it
    has."""
    known = linux_functions(table)
    wrong = []
    for where, name, path in declared(package):
        if path in known.get(name, set()):
            continue
        if name in known:
            hint = f"Linux has it in {', '.join(sorted(known[name]))}"
        else:
            hint = f"no such name in Linux; near: {', '.join(get_close_matches(name, known, 3)) or 'nothing'}"
        wrong.append(f"{where}: {name} in {path}: {hint}")
    return wrong


def twice(package=PACKAGE):
    """Originals that are declared more than once: one of them would be somebody else's."""
    seen, wrong = {}, []
    for where, name, path in declared(package):
        if (name, path) in seen:
            wrong.append(f"{where}: {name} in {path} is declared at {seen[name, path]} too")
        seen.setdefault((name, path), where)
    return wrong


MENTION = re.compile(
    r"((?:mm|kernel|fs|arch|include|lib|ipc)/[\w./-]+\.[ch]): ((?:\w+(?:, | and )?)+)"
)


def mentioned(package=PACKAGE):
    """(where, function name, path) of every function that a text names behind its file: ``mm/vma.c:
    validate_mm``."""
    return [
        (f"{module.name}:{number}", name, found[1])
        for module in modules(package).values()
        for number, line in enumerate(module.text.splitlines(), 1)
        for found in MENTION.finditer(line)
        for name in re.findall(r"\w+_\w+", found[2])
    ]


def misplaced(package=PACKAGE, table=TABLE):
    """One line for each mention of a function that the table has in other files only, or not at all
    though it has its file."""
    known = linux_functions(table)
    files = {file for places in known.values() for file in places}
    return [
        f"{where}: {name} in {path}: Linux has it in "
        f"{', '.join(sorted(known.get(name, ()))) or 'no file'}"
        for where, name, path in mentioned(package)
        if path not in known.get(name, ()) and (name in known or path in files)
    ]


def test_every_function_that_a_text_places_is_there():
    assert len(mentioned()) > 40
    assert not misplaced(), "\n" + "\n".join(misplaced())


def test_every_declared_function_is_linux_s():
    assert declared(), "no @linux function found: there is nothing to check"
    assert not unknown(), "\n" + "\n".join(unknown())


def test_no_original_is_declared_twice():
    assert declared()
    assert not twice(), "\n" + "\n".join(twice())


def test_the_table_is_sorted_and_without_repeats():
    lines = TABLE.read_text(encoding="utf-8").splitlines()[1:]
    assert len(lines) > 10_000
    assert lines == sorted(set(lines))


# ---------------------------------------------------------------- the checks can fail


def package_with(folder, text):
    package = folder / "kemu"
    package.mkdir()
    (package / "x.py").write_text(text)
    return package


def test_a_wrong_file_a_wrong_name_and_a_computed_path_are_found(tmp_path):
    package = package_with(
        tmp_path,
        '@linux("mm/memory.c")\ndef do_wp_page(): ...\n'
        '@linux("mm/mmap.c")\ndef do_wp_page(): ...\n'
        '@frames.linux("mm/memory.c")\ndef do_wp_pge(): ...\n'
        "@linux(PATH)\ndef folio_get(): ...\n"
        "@linux\ndef not_a_declaration(): ...\n",
    )
    lines = unknown(package)
    assert len(lines) == 3
    assert lines[0] == "kemu.x:4: do_wp_page in mm/mmap.c: Linux has it in mm/memory.c"
    assert lines[1].startswith(
        "kemu.x:6: do_wp_pge in mm/memory.c: no such name in Linux; near: do_wp_page"
    )
    assert lines[2] == "kemu.x:8: folio_get in None: Linux has it in include/linux/mm.h"


def test_a_misplaced_mention_is_found(tmp_path):
    text = '"""mm/vma.c: validate_mm, vma_link_file; mm/mmap.c: validate_mm; mm/memory.c: do_wp_pge; fs/none.c: no_such."""\n'
    package = package_with(tmp_path, text)
    assert misplaced(package) == [
        "kemu.x:1: validate_mm in mm/mmap.c: Linux has it in mm/vma.c, mm/vma.h",
        "kemu.x:1: do_wp_pge in mm/memory.c: Linux has it in no file",
    ]


def test_a_second_declaration_is_found(tmp_path):
    package = package_with(tmp_path, '@linux("mm/memory.c")\ndef do_wp_page(): ...\n' * 2)
    assert twice(package) == ["kemu.x:4: do_wp_page in mm/memory.c is declared at kemu.x:2 too"]
