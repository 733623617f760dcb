"""A plot: values that hold until they change, looked at often enough, said in letters as well as in
lines."""

import pytest

from kemu.api import Session
from kemu.commands.run import run
from kemu.readings import PlotGraph, PlotSeries
from kemu.views.pictures import plot as graph_plot
from kemu.views.style import PLAIN
from tests.views.svg import words_of

STAIRS = PlotGraph(
    0, 10, 1, (PlotSeries("x", ((0, None), (2, 0), (5, 3), (8, None))),), (("here", 5),), ()
)


@pytest.fixture
def kemu():
    session = Session()
    session.run(
        "spawn app; mmap app 0x10000 2p rw; write app 0x10000 1; mark written; fork app as kid; "
        "write kid 0x10000 2"
    )
    return session


def subject(kemu, words):
    return kemu.reading(f"graph plot {words}").subject


def test_a_refcount_goes_up_at_fork_and_down_after_the_copy(kemu):
    values = [value for _, value in subject(kemu, "refcount(pfn(app, 0x10000))").series[0].points]
    assert values[0] is None
    assert values[1] == 1
    assert max(values[1:]) >= 2
    assert values[-1] == 1


def test_each_change_stands_at_the_event_that_made_it(kemu):
    before = 0
    for event, value in subject(kemu, "app.rss --diff written end").series[0].points:
        with kemu.at(event):
            assert kemu.find("app").mm.rss_stat[1] == value
        assert event >= before
        before = event


def test_rss_is_one_series_a_process_and_free_counts_frames(kemu):
    plot = subject(kemu, "rss, free")
    assert [series.name for series in plot.series] == ["rss(app)", "rss(kid)", "free frames"]
    assert plot.series[2].points[-1][1] == kemu.reading("free").free
    assert plot.marks == (("written", kemu.marks["written"]),)


def test_commas_in_parentheses_and_quotes_part_nothing(kemu):
    assert (
        len(subject(kemu, "pfn(app, 0x10000) == pfn(kid, 0x10000), shared('app', 'kid')").series)
        == 2
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("hex(1)", "is not a number"),
        ("app", "is not a number"),
        ("1,", "expected a value"),
        (", ".join(["1"] * 13), "too many"),
    ],
)
def test_what_cannot_be_plotted_is_said(kemu, words, says):
    (result,) = run(kemu, f"graph plot {words}")
    assert says in result.error.what
    assert kemu.now == kemu.end


def test_a_staircase_has_gaps_where_there_is_no_value():
    lines = graph_plot.terminal(STAIRS, PLAIN)
    assert lines[0] == "values at the events 0 to 10"
    assert "#5  mark here" in lines
    bottom = next(line for line in lines if line.lstrip().startswith("0 +"))
    assert bottom[11:24].isspace()
    assert "aaa" in bottom
    assert lines[-2] == "a  x: 0 at first, 3 at last, between 0 and 3"


def test_numbers_at_the_side_are_whole():
    assert graph_plot.terminal(STAIRS, PLAIN)[2].startswith("       3 +")
    flat = STAIRS.replace(series=(PlotSeries("y", ((0, 7),)),))
    assert next(line for line in graph_plot.terminal(flat, PLAIN) if "+" in line).startswith(
        "       7 +"
    )


def test_without_any_value_it_says_so():
    text = graph_plot.terminal(STAIRS.replace(series=(PlotSeries("z", ((0, None),)),)), PLAIN)
    assert "no value at any of these moments" in text


def test_the_svg_says_all_in_words_and_fetches_nothing():
    svg = graph_plot.svg(STAIRS.replace(series=(PlotSeries("<x>&'", ((0, 1), (4, 2))),)))
    assert "a <x>&'" in words_of(svg)
    assert "<desc>&lt;x&gt;&amp;&#x27;: 1 from #0, 2 from #4</desc>" in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in svg


def test_series_that_end_at_one_height_share_their_letters():
    two = (PlotSeries("x", ((0, 1),)), PlotSeries("y", ((0, 1),)))
    assert "ab" in words_of(graph_plot.svg(STAIRS.replace(series=two)))


def ticks(series):
    """The numbers at the side of the drawing."""
    found = [
        part.partition("<")[0]
        for part in graph_plot.svg(STAIRS.replace(series=(series,))).split('text-anchor="end">')
    ]
    return found[1:]


def test_a_short_scale_has_a_number_at_each_step_and_a_long_one_three():
    assert ticks(PlotSeries("x", ((0, 0), (4, 3)))) == ["0", "1", "2", "3"]
    assert ticks(PlotSeries("x", ((0, 0), (4, 100)))) == ["0", "50", "100"]
