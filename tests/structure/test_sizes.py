"""Functions and modules stay small: one function is one step of the story, one module is one
story."""

from tests.structure.sources import PACKAGE, modules

LONGEST_FUNCTION = 60
"""Lines, from ``def`` to the last one, docstring included."""
LONG_FUNCTION = 40
"""At most one function in ten may have more."""
LONGEST_MODULE = 500


def function_sizes(package=PACKAGE):
    """(lines, where) of every function, longest first."""
    sizes = [
        (
            function.end_lineno - function.lineno + 1,
            f"{module.name}:{function.lineno} {function.name}",
        )
        for module in modules(package).values()
        for function in module.functions
    ]
    return sorted(sizes, reverse=True)


def long_functions(package=PACKAGE):
    return [
        f"{where}: {lines} lines"
        for lines, where in function_sizes(package)
        if lines > LONGEST_FUNCTION
    ]


def long_modules(package=PACKAGE):
    sizes = [(len(module.text.splitlines()), name) for name, module in modules(package).items()]
    return [
        f"{name}: {lines} lines"
        for lines, name in sorted(sizes, reverse=True)
        if lines > LONGEST_MODULE
    ]


def test_no_function_is_too_long():
    assert function_sizes()
    assert not long_functions()


def test_nine_functions_in_ten_are_short():
    sizes = [lines for lines, _ in function_sizes()]
    assert sizes
    long = sum(lines > LONG_FUNCTION for lines in sizes)
    assert long <= len(sizes) / 10, (
        f"{long} of {len(sizes)} functions have more than {LONG_FUNCTION} lines"
    )


def test_no_module_is_too_long():
    assert modules()
    assert not long_modules()


# ---------------------------------------------------------------- the checks can fail


def test_one_line_too_many_is_found(tmp_path):
    package = tmp_path / "kemu"
    package.mkdir()
    (package / "f.py").write_text(
        "def f():\n" + "    x = 1\n" * 59 + "def g():\n" + "    x = 1\n" * 60
    )
    (package / "m.py").write_text("x = 1\n" * (LONGEST_MODULE + 1))
    (package / "n.py").write_text("x = 1\n" * LONGEST_MODULE)
    assert long_functions(package) == ["kemu.f:61 g: 61 lines"]
    assert long_modules(package) == [f"kemu.m: {LONGEST_MODULE + 1} lines"]
