"""Counts that say how well the inside is kept: ``python -m tests.structure.house`` prints them all.

Each count is a function that returns what it found, so that a test can hold the ones that matter
(``test_house.py``) and show that they are able to fail.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from statistics import median

from tests.structure.sources import PACKAGE, ROOT, modules

WIDEST = 100
"""Columns of a line."""

LONGEST_STORY = 150
"""Lines of a golden script."""

FEWEST_STORIES = 80
TINY = 3
"""Lines of the body of a function that hardly earns a name of its own."""


# ---------------------------------------------------------------- one more system call


def files_per_call(package=PACKAGE):
    """System call -> the files of kemu that say its name as a word of the program: as a string."""
    from kemu.abi.calls import BY_NAME

    says = defaultdict(set)
    for module in modules(package).values():
        words = {
            node.value
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        for word in words:
            says[word].add(module.path.relative_to(package).as_posix())
    return {call: sorted(says[call]) for call in BY_NAME}


# ---------------------------------------------------------------- a typed line


LINE = "write app 0x10000 7"


def stays(line=LINE):
    """The rooms (modules) that a typed line passes between its entry and the kernel, in order.

    Those are the rooms that the pipeline hands it to, `commands.run` above all, and at last the
    ones that are open when the kernel is reached. What a room asks of others by the way (the kind
    of an argument, a name, the journal) is that room's own affair."""
    from kemu.experiment.session import Session
    from kemu.front.cli.options import Options
    from kemu.front.terminal.output import TextOutput
    from kemu.front.terminal.plain import Runner

    shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    runner = Runner(Options(), Session(), TextOutput(shown, shown))
    for before in ("spawn app; mmap app 0x10000 1p rw", line):
        runner.line(before)  # the second time nothing is imported or made for the first time
    rooms = ["front.terminal.plain"]
    reached = []

    def watch(frame, event, _argument):
        room = _room(frame)
        if event != "call" or not room or reached:
            return
        if room.startswith(("kernel.", "machine.")):
            reached.append(room)
            rooms.extend(_open_rooms(frame.f_back)[1:])
        elif _room(frame.f_back) in PIPELINE and room.split(".")[0] not in LEAVES:
            rooms.append(room)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        runner.line(line)
    finally:
        sys.setprofile(before)
    assert reached, f"'{line}' does not reach the kernel"
    return [room for at, room in enumerate(rooms) if at == 0 or rooms[at - 1] != room]


PIPELINE = {"front.terminal.plain", "commands.run"}
LEAVES = {"errors", "readings", "interrupts"}
"""Units that every other may import; asking them is not a stay."""


def _room(frame):
    """The module of kemu that a frame runs in, without `kemu.`; "" elsewhere."""
    name = frame.f_globals.get("__name__", "") if frame is not None else ""
    return name.removeprefix("kemu.") if name.startswith("kemu.") else ""


def _open_rooms(frame):
    """The rooms that are open, from the one that executes the command to the innermost."""
    found = []
    while frame is not None and _room(frame) not in PIPELINE:
        if _room(frame):
            found.append(_room(frame))
        frame = frame.f_back
    return found[::-1]


# ---------------------------------------------------------------- the shape of the code


def tiny_helpers(package=PACKAGE):
    """Private functions of at most `TINY` lines that are used once, and say nothing of themselves.

    One with a docstring has a name that teaches something, or should be folded by hand."""
    found = []
    for module in modules(package).values():
        for node in module.functions:
            if not node.name.startswith("_") or node.name.startswith("__") or node.decorator_list:
                continue
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = sum(part.end_lineno - part.lineno + 1 for part in body)
            if body and lines <= TINY and len(re.findall(rf"\b{node.name}\b", module.text)) == 2:
                found.append((module.name, node.lineno, node.name))
    return found


def wide_lines(package=PACKAGE, widest=WIDEST):
    """Lines with more than `widest` columns, without the reason of an exemption at their end."""
    return [
        f"{module.name}:{number}"
        for module in modules(package).values()
        for number, line in enumerate(module.text.split("\n"), 1)
        if len(re.sub(r"  # (?:noqa|type: ignore).*", "", line)) > widest
    ]


def constants_imported(package=PACKAGE):
    """Constants that modules of kernel/ import by name, each counted once a module."""
    return sum(
        alias.name.isupper()
        for module in modules(package).values()
        if module.name.startswith("kemu.kernel")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    )


def code_lines(package=PACKAGE):
    """Lines of kemu/ that hold a token of code: no blank line, no comment, no docstring."""
    total = 0
    for module in modules(package).values():
        numbers = set()
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
            if token.type not in {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE} and token[1]:
                numbers.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                numbers -= set(range(node.lineno, node.end_lineno + 1))
        total += len(numbers)
    return total


def set_from_elsewhere(package=PACKAGE, names=("session", "experiment")):
    """Assignments to an attribute of the experiment by a module outside of experiment/."""
    found = []
    for module in modules(package).values():
        if module.name.startswith("kemu.experiment"):
            continue
        for node in ast.walk(module.tree):
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AugAssign | ast.AnnAssign)
                else []
            )
            found += [
                f"{module.name}:{target.lineno} {ast.unparse(target)}"
                for target in targets
                if isinstance(target, ast.Attribute) and ast.unparse(target.value) in reach(names)
            ]
    return found


def reach(names):
    """The ways in which code says the experiment: by its name, or as an attribute of self."""
    return {way for name in names for way in (name, f"self.{name}", f"self._{name}")}


def kinds_asked(package=PACKAGE):
    """Places outside of lessons/kinds/ that ask for the kind of a step."""
    asked = re.compile(r"step\.kind (?:==|!=|in\b|not in\b)")
    return [
        f"{module.name}:{number}: {line.strip()}"
        for module in modules(package).values()
        if module.name.startswith("kemu.lessons") and ".kinds" not in module.name
        for number, line in enumerate(module.text.split("\n"), 1)
        if asked.search(line)
    ]


# ---------------------------------------------------------------- what is said


def help_mismatches():
    """Commands whose synopsis and list of arguments name different things."""
    from kemu.commands import table

    wrong = []
    for name in table.TABLE:
        made = table.find(name)
        said = set(re.findall(r"[\w|-]+", made.synopsis.removeprefix(made.name)))
        listed = {word for part in made.parts for word in re.findall(r"[\w|-]+", part.label)}
        wrong += [f"{name}: {word}" for word in sorted(said ^ listed)]
    return wrong


TRANSLATED = {
    "behind for after": r"\bbehind (?:it|the|this|that|them|each|a|an|its|any|which)\b",
    "stands for is": r"\bstands? (?:in|at|there|on|behind|beside|above|below|first|alone)\b(?!-)",
    "is none": r"(?<!there )\b(?:is|are) none\b(?! of)",
    "is no X": r"(?<![Tt]here )\b(?:is|are) no (?!longer\b|more\b|such\b)[a-z]+",
    "who as whoever": (
        r"(?:^|[.;:(] )[Ww]ho (?:knows|asks|calls|wants|reads|writes|touches|replaces)\b"
    ),
    "what came of it": r"\bc[ao]mes? of\b",
    "as far as": r"\bas far as\b(?! you)",
    "a formula": r"rule that keeps this file honest",
}
"""Turns of phrase that read as translated, by what is wrong with them."""


def translated(texts):
    """``place: phrase`` of each turn of phrase in (place, text) pairs that reads as translated."""
    found = []
    for place, text in texts:
        flat = re.sub(r"(?<=\S)\n\s*#? ?(?=\S)", " ", text)
        for pattern in TRANSLATED.values():
            found += [f"{place}: {hit[0]}" for hit in re.finditer(pattern, flat, re.MULTILINE)]
    return found


def own_texts():
    """(place, text) of all that kemu says: strings, docstrings and comments, pages and lessons."""
    for module in modules().values():
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
            if token.type in {tokenize.STRING, tokenize.COMMENT}:
                yield f"{module.name}:{token.start[0]}", token.string
    for path in sorted(
        [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("lessons/**/*.md")]
    ):
        if ".zh." not in path.name:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


# ---------------------------------------------------------------- golden scripts, commits


def stories():
    """Golden script -> its lines."""
    scripts = sorted((ROOT / "tests" / "golden").glob("*.kemu"))
    return {path.stem: path.read_text(encoding="utf-8").count("\n") for path in scripts}


def long_subjects(number=50):
    """Subjects of the newest commits with more than 72 characters; empty where there is no git."""
    command = ["git", "log", f"-{number}", "--format=%s"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return [subject for subject in done.stdout.split("\n") if len(subject) > 72]


# ---------------------------------------------------------------- the table


def rows():
    """(what, count) of all that is measured here."""
    per_call = {call: len(files) for call, files in files_per_call().items()}
    worst = max(per_call, key=per_call.get)
    yield (
        "files that say a system call's name",
        f"median {median(per_call.values()):g}, most {per_call[worst]} ({worst})",
    )
    visited = stays()
    yield f"stays of '{LINE}'", f"{len(visited)} in {len(set(visited))} rooms: {' '.join(visited)}"
    often = Counter(visited).most_common(1)[0]
    yield "  the room visited most", f"{often[0]}, {often[1]} times"
    yield "private helpers used once, up to 3 lines", len(tiny_helpers())
    yield f"lines over {WIDEST} columns", len(wide_lines())
    yield "lines over 88 columns", len(wide_lines(widest=88))
    yield "constants that kernel/ imports by name", constants_imported()
    yield (
        "lines of kemu/, and of code among them",
        f"{sum(m.text.count(chr(10)) for m in modules().values())}, {code_lines()}",
    )
    yield "attributes of the experiment set from elsewhere", len(set_from_elsewhere())
    yield "places that ask for a step's kind, outside kinds/", len(kinds_asked())
    yield "names that help's synopsis and list do not share", len(help_mismatches())
    yield "phrases that read as translated", len(translated(own_texts()))
    found = stories()
    longest = max(found, key=found.get)
    yield (
        "golden scripts",
        f"{len(found)}, {sum(found.values())} lines, the longest {found[longest]} ({longest})",
    )
    yield "subjects over 72 characters among the last 50 commits", len(long_subjects())


if __name__ == "__main__":
    for what, count in rows():
        sys.stdout.write(f"{what:55}  {count}\n")
