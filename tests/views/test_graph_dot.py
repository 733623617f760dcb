"""Every text of a picture means itself in DOT, whatever characters it holds; none becomes HTML, no
node a cluster."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.api import Session
from kemu.views.json import to_data
from kemu.views.pictures import dot, layout
from kemu.views.pictures import draw as graph
from kemu.views.pictures.model import Cell, Diagram, Edge, Node, compared
from kemu.views.terminal import render
from tests.structure.sources import PACKAGE
from tests.views.pictures import FOLDER, NAMES
from tests.views.svg import ENGINES, without_an_engine, words_of

AWKWARD = [
    "<script>", "<b>bold</b>", '"quoted"', "{braces}", "a|b", "back\\slash", "\\N\\l\\", "&lt; &amp; &#65;", "two  blanks", "[x]",
    "漢字", ("Ω "
          "é"), "new\nline", "\x1b[2J", "\u202etxt", "\udc80", "%d %s", "-->", "]]>", "'", "", " ", "<", ">", "\\", '\\"',
]  # fmt: skip


def one_node(text):
    return Diagram(
        text,
        (Node("n", (Cell(text, "head"), Cell(text, "more")), "frame"),),
        (Edge("n", "head", "n", "more", text),),
    )


def labels(source):
    """The label of every node, edge and graph as DOT writes it, quotes included."""
    return re.findall(r'label=("(?:[^"\\]|\\.)*"|<[^>]*>|[^\s\]]+)', source)


@pytest.mark.parametrize("text", AWKWARD)
def test_a_label_is_a_quoted_text_and_never_html(text):
    source = dot.source(("", one_node(text)))
    found = labels(source)
    assert found
    assert not [label for label in found if label.startswith("<")]
    assert all(char == "\n" or char.isprintable() or char == "\t" for char in source)
    assert source.encode()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=20))
def test_any_text_makes_dot_with_as_many_fields_as_cells(text):
    source = dot.source(("", one_node(text)))
    (record,) = [label for label in labels(source) if "<p0>" in label]
    fields = re.split(r"(?<!\\)(?:\\\\)*\|", record)
    assert len(fields) == 2


@pytest.mark.skipif(not ENGINES, reason=without_an_engine())
@pytest.mark.parametrize("by", ENGINES)
def test_an_engine_shows_each_awkward_text_as_it_is(by):
    nodes = tuple(Node(f"n{at}", (Cell(text, "head"),), "frame") for at, text in enumerate(AWKWARD))
    edges = tuple(
        Edge("n0", "head", f"n{at}", "head", text) for at, text in enumerate(AWKWARD) if at
    )
    found = words_of(layout.layout(dot.source(("", Diagram("", nodes, edges))), "svg", by))
    for text in AWKWARD:
        shown = [" ".join(dot.plain(line).split()) for line in text.split("\n")]
        assert all(line in found for line in shown if line), text


def test_a_file_with_an_awkward_name_is_only_text_everywhere():
    name = '/<script>alert("x")</script>{|}\\&lt;漢\\n'
    kemu = Session()
    kemu.run(f"spawn app; mkfile '{name.replace(chr(92), chr(92) * 2)}' 1p")
    kemu.run(
        f"mmap app 0x10000 1p r file '{name.replace(chr(92), chr(92) * 2)}'; read app 0x10000 1"
    )
    picture = kemu.reading("graph mm app")
    assert name in render(picture)
    source = graph.dot(picture)
    assert not [label for label in labels(source) if label.startswith("<")]
    assert "\\<script\\>" in source
    assert picture.subject.files[0].path == to_data(picture)["subject"]["files"][0]["path"] == name
    for by in ENGINES:
        found = words_of(layout.layout(source, "svg", by))
        assert name in found


@pytest.mark.parametrize("name", NAMES)
def test_no_golden_dot_has_an_html_label_or_a_cluster(name):
    source = "\n".join((FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("[dot]")[1:])
    assert labels(source)
    assert not [label for label in labels(source) if label.startswith("<")]
    assert "cluster" not in source


def unguarded(text):
    """Lines of a module that give graphviz a text which is neither `label(...)` nor `record(...)`,
    nor a name that holds one."""
    made = set(re.findall(r"^ +(\w+) = (?:label|record)\(", text, re.MULTILINE))
    given = [line for line in text.split("\n") if re.search(r"\blabel=|\"label\":|\.node\(", line)]
    return [
        line
        for line in given
        if not re.search(rf"(label|record)\(|label=({'|'.join(made) or '-'})\b", line)
    ]


def test_every_label_in_the_code_is_escaped():
    found = {
        path.name: unguarded(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")
    }
    using = [
        path.name
        for path in PACKAGE.rglob("*.py")
        if "graphviz import" in path.read_text(encoding="utf-8")
    ]
    assert [name for name in using if name != "layout.py"] == ["dot.py"], "only dot.py writes DOT"
    assert not found["dot.py"]
    text = (PACKAGE / "views" / "pictures" / "dot.py").read_text(encoding="utf-8")
    assert text.count("nohtml(") == 2, "label and record, and nobody else"


def test_an_unguarded_label_is_found():
    good = '    below = label(x)\n    graph.attr(label=below)\n    {"label": label(x)}\n    graph.node(a, record(x))\n'
    assert not unguarded(good)
    bad = [
        "graph.attr(label=text)",
        '{"label": x}',
        "graph.node(a, text)",
        "graph.node(a, nohtml(x))",
    ]
    assert unguarded(good + "\n".join(bad)) == bad


# ---------------------------------------------------------------- comparing


def test_what_is_new_gone_and_different_is_marked_by_key():
    before = Diagram(
        "t",
        (
            Node("a", (Cell("1", "x"), Cell("2", "y")), "frame"),
            Node("gone", (Cell("g", "x"),), "frame"),
        ),
        (),
    )
    after = Diagram(
        "t",
        (
            Node("a", (Cell("1", "x"), Cell("3", "y")), "frame"),
            Node("new", (Cell("n", "x"),), "frame"),
        ),
        (),
    )
    one, two = compared(before, after)
    assert [
        (node.key, node.mark, [cell.mark for cell in node.cells])
        for node in (*one.nodes, *two.nodes)
    ] == [
        ("a", "*", ["", "*"]),
        ("gone", "-", [""]),
        ("a", "*", ["", "*"]),
        ("new", "+", [""]),
    ]
    source = dot.source(("before", one), ("after", two))
    assert "- g" in source.replace("\\ ", " ")
    assert "+ n" in source.replace("\\ ", " ")


def test_equal_moments_have_no_mark():
    same = Diagram("t", (Node("a", (Cell("1", "x"),), "frame"),), (Edge("a", "x", "a", "x"),))
    assert compared(same, same) == (same, same)
