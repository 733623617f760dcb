"""The report in a real browser: it loads, it is walked with keys, and it shows what kemu says of
the same moments."""

import json
import re
import time

import pytest

from kemu.front.cli import main as cli
from kemu.front.terminal.output import to_json
from kemu.views.report import default_sides
from kemu.views.report_panels import NARROW_GRID, mappings, memory, memory_in_words, tasks
from kemu.views.report_player import Player
from kemu.views.report_tables import NARROW, in_words, joined
from tests.report import browser as chromium
from tests.report.plays import LESSON, LONG, SITUATIONS, page_of, session_of

pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason="no Chromium here: Debian's package is called chromium"
)

STORY = SITUATIONS["after_one_copy"] + "; ps; write app 0x10000 'C'; exit child"
FORK, COPY, REUSE = 4, 5, 6
"""The commands of it that are looked into, by their place among those that change something."""


@pytest.fixture(scope="module")
def browser():
    running = chromium.Browser()
    yield running
    running.close()


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A session and the file of its report."""
    session = session_of(STORY)
    path = tmp_path_factory.mktemp("report") / "story.html"
    path.write_text(page_of(session)[0], encoding="utf-8")
    return session, path


def test_a_part_of_a_session_can_be_walked_too(browser, tmp_path):
    session = session_of(STORY)
    path = tmp_path / "part.html"
    copy = session.timeline.records[COPY]
    session.run(f"report {copy.first} {session.timeline.records[REUSE].last} -o {path}")
    page = browser.open(path)
    for key in ("PageUp", "PageUp", "ArrowRight", "ArrowLeft", "PageDown"):
        page.run("document.getElementById('slider').focus()")
        page.key(key)
    assert shown(page) == copy.last
    page.run(f"go({copy.first})")
    assert (page.complaints, shown(page)) == ([], copy.first)


def test_a_lesson_is_walked_part_by_part(browser, tmp_path):
    lesson = tmp_path / "lesson.md"
    lesson.write_text(LESSON, encoding="utf-8")
    assert cli.main(["report", str(lesson), "-o", str(tmp_path / "lesson.html")]) == 0
    page = browser.open(tmp_path / "lesson.html", fragment="#p2e200")
    assert (page.complaints, shown(page), page.run("document.getElementById('part').value")) == (
        [],
        200,
        "2",
    )
    assert "Step 2 of 2" in page.run("document.getElementById('note').textContent")
    page.run("document.getElementById('part').value = '1'")
    page.run("document.getElementById('part').dispatchEvent(new Event('change'))")
    assert "How many faults" in page.run("document.getElementById('note').textContent")
    page.run("document.getElementById('slider').focus()")
    page.key("End")
    assert (
        page.run("document.querySelector('ol.commands[data-part=\"1\"] li.here code').textContent")
        == "write app 0x10000 7"
    )
    assert page.run("document.querySelectorAll('ol.commands[data-part=\"2\"] li.here').length") == 0


@pytest.fixture
def page(browser, story):
    return browser.open(story[1])


def shown(page):
    """The number of the event that the page says it shows."""
    return int(page.run("document.getElementById('where').textContent").split()[0][1:])


def goto(page, moment):
    page.run(f"location.hash = '#e{moment}'")
    page.run("new Promise((done) => setTimeout(done, 20))")
    assert shown(page) == moment


# ---------------------------------------------------------------- it loads, and it moves


def test_it_loads_without_a_word_in_the_console_and_asks_for_nothing(page, story):
    goto(page, 1)
    assert page.complaints == []
    assert page.requests == [story[1].as_uri()]


def test_the_slider_reaches_the_first_and_the_last_event(page, story):
    last = story[0].end
    assert shown(page) == story[0].timeline.records[0].last
    for value in (0, last // 2, last):
        page.run(f"document.getElementById('slider').value = {value}")
        page.run("document.getElementById('slider').dispatchEvent(new Event('input'))")
        assert shown(page) == value
        assert page.run("document.getElementById('text').textContent").startswith(f"#{value} ")


def test_keys_move_by_event_and_by_command(page, story):
    session = story[0]
    choose(page, "grain", "shown")
    page.run("document.activeElement.blur()")
    page.key("Home")
    assert shown(page) == 0
    page.key("ArrowRight")
    first = shown(page)
    page.key("ArrowRight")
    assert 0 < first < shown(page)
    page.key("ArrowLeft")
    assert shown(page) == first
    page.key("PageDown")
    assert shown(page) == session.timeline.records[0].last
    page.key("PageUp")
    assert shown(page) == 0
    page.key("End")
    assert shown(page) == session.end


def choose(page, name, value):
    """Choose in a list of the player."""
    page.run(
        f"const s_{name} = document.getElementById('{name}'); s_{name}.value = '{value}'; "
        f"s_{name}.dispatchEvent(new Event('change'))"
    )


def test_a_step_is_a_command_at_first(page, story):
    ends = [record.last for record in story[0].timeline.records if record.last > record.first]
    page.run("go(0)")
    for end in ends[:4]:
        page.key("ArrowRight")
        assert shown(page) == end


def test_keys_leave_what_scrolls_by_itself_alone(page):
    page.run("go(20)")
    page.run("document.querySelector('#mappings').tabIndex = 0")
    page.run("document.querySelector('#mappings').focus()")
    page.key("End")
    assert shown(page) == 20


def test_play_goes_on_event_by_event_at_the_chosen_speed(page):
    page.run("go(0)")
    choose(page, "speed", "30")
    page.run("window.seen = []; window.timer0 = setInterval(() => seen.push(view.at), 5)")
    page.run("play(true)")
    time.sleep(1)
    page.run("play(false); clearInterval(timer0)")
    seen = sorted(set(page.run("seen")))
    shown_events = page.run("stops.shown")
    assert len(seen) > 5
    assert set(seen) <= set(shown_events)
    assert page.run("document.getElementById('play').textContent") == "play"


def test_it_can_be_used_with_the_keyboard_alone(page):
    reached = set()
    wanted = {
        "slider",
        "first",
        "back",
        "play",
        "next",
        "last",
        "grain",
        "speed",
        "look",
        "left",
        "right",
    }
    while not wanted <= reached and len(reached) < 200:
        page.key("Tab")
        reached.add(page.run("document.activeElement.id || document.activeElement.textContent"))
    assert wanted <= reached
    page.run("document.getElementById('back').focus()")
    before = shown(page)
    page.key("Enter")
    assert shown(page) < before


def test_a_finer_step_stops_at_every_event(page):
    page.run(
        "const g = document.getElementById('grain'); g.value = 'all'; g.dispatchEvent(new "
        "Event('change'))"
    )
    before = shown(page)
    page.key("ArrowLeft")
    assert shown(page) == before - 1


def test_many_events_can_be_shown_in_both_directions(page, story):
    page.run("for (let n = 0; n < film.last; n += 17) go(n)")
    page.run("for (let n = film.last; n >= 0; n -= 17) go(n)")
    page.run("go(0)")
    assert (page.complaints, shown(page)) == ([], 0)
    page.run("go(film.last)")
    before = page.run("document.getElementById('state').innerHTML")
    page.run("go(0); go(film.last)")
    assert page.run("document.getElementById('state').innerHTML") == before
    page.run("new Promise((done) => setTimeout(done, 600))")
    assert page.run("location.hash") == f"#e{story[0].end}"


# ---------------------------------------------------------------- it shows what is true


ENTRIES = """[...document.querySelectorAll('#joined tr[data-entry]')].map((row) =>
  [row.dataset.entry, row.cells[0].textContent, row.cells[2].textContent, row.cells[3].textContent])"""
FRAMES = "[...document.querySelectorAll('#joined .frame')].map((box) => [Number(box.dataset.frame), box.innerText])"
CELLS = "[...row.cells].map((cell) => cell.textContent.replace('*', ''))"
VMAS = f"[...document.querySelectorAll('#mappings tr[data-vma]')].map((row) => {CELLS}.slice(0, 3))"
TASKS = f"[...document.querySelectorAll('#tasks tbody tr')].map((row) => {CELLS})"
RAM = """[...document.querySelectorAll('#memory text.cells')].map((text) => {
  const all = [...text.parentElement.querySelectorAll('text')];
  return [Number(all[all.indexOf(text) - 1].textContent), text.textContent];
})"""


def said(session, text):
    """What `kemu --json` says."""
    return json.loads(json.dumps(to_json(session.run(text)[-1], session.state_hash())))["data"]


def entries_shown(page):
    """(table, index, letters, frame) of every entry that is drawn."""
    for key, index, letters, target in page.run(ENTRIES):
        first, last = (re.findall(r"\d+", index) * 2)[:2]
        for i in range(int(last) - int(first) + 1):
            yield int(key.split(":")[0]), int(first) + i, letters, int(target.split()[0], 16) + i


def entries_said(table):
    """The same of the tables that `pt` gives."""
    for run in table["runs"]:
        entry = run["entry"]
        if entry is not None:
            yield from (
                (table["pfn"], run["first"] + i, entry["letters"], entry["pfn"] + i)
                for i in range(run["count"])
            )
        if run["table"] is not None:
            yield from entries_said(run["table"])


@pytest.mark.parametrize(("command", "before"), [(FORK, 0), (COPY, 5), (REUSE, 0)])
def test_the_state_at_three_moments_is_the_one_that_kemu_says(page, story, command, before):
    session = story[0]
    moment = session.timeline.records[command].last - before
    goto(page, moment)
    session.goto(moment)
    people = [name for name in ("app", "child") if name in session.names()]
    wanted = sorted(
        entry for name in people for entry in entries_said(said(session, f"pt {name}")["root"])
    )
    assert sorted(entries_shown(page)) == wanted
    frames = page.run(FRAMES)
    assert {pfn for pfn, _ in frames} == {pfn for _, _, letters, pfn in wanted if "N" in letters}
    for pfn, text in frames:
        frame = said(session, f"frame {pfn}")
        numbers = re.findall(r"(?:\u2192|refcount |mapcount )(\d+)(?!\d*\u2192)", text)
        assert [int(number) for number in numbers] == [frame["refcount"], frame["mapcount"]]
        assert frame["state"] in text
        assert ("not exclusive" in text) is (frame["state"] == "anon" and not frame["exclusive"])
    maps = [vma for name in people for vma in said(session, f"maps {name}")["vmas"]]
    assert page.run(VMAS) == [[vma["start"], vma["end"], vma["perm"]] for vma in maps]
    for row, task in zip(page.run(TASKS), said(session, "ps")["tasks"], strict=True):
        assert row[:2] + row[4:6] == [
            str(task["pid"]),
            task["name"],
            str(task["size"]),
            str(task["rss"]),
        ]
    ram = "".join(run["letter"] * run["count"] for run in said(session, "mem")["runs"])
    lines = page.run(RAM)
    assert len(lines) > 4
    assert lines == [[at, ram[at : at + 64]] for at, _ in lines]
    session.goto(session.end)


OTHERS = {
    "no_swap": "spawn app; mmap app 0x10000 3p rw; write app 0x10000 7; write app 0x11000 8; "
               "madvise app 0x10000 2p pageout; "
    "madvise app 0x12000 1p guard_install; fork app as kid",
    "many_pages": "spawn app; mmap app 0x200000 90p rw populate; fork app as kid; write kid "
                  "0x210000 7; "
    "mprotect app 0x200000 9p none",
}  # fmt: skip
MACHINES = [(name, "x86-64") for name in SITUATIONS | OTHERS] + [
    ("after_one_copy", "sv39"),
    ("after_one_copy", "x86-64-la57"),
]


@pytest.mark.parametrize(("name", "geometry"), MACHINES)
def test_the_script_draws_what_python_draws(browser, tmp_path, name, geometry):
    html, film = page_of(session_of((SITUATIONS | OTHERS)[name], geometry=geometry))
    path = tmp_path / "situation.html"
    path.write_text(html, encoding="utf-8")
    page = browser.open(path)
    for moment in (film.last, film.last * 2 // 3, film.last // 3):
        player = Player(film).goto(moment)
        ids = default_sides(player)
        page.run(f"go({moment})")
        assert page.run("sides()") == list(ids)
        assert page.run(f"joined(player, {list(ids)}, WIDE)") == joined(player, ids)
        assert page.run(f"joined(player, {list(ids)}, NARROW)") == joined(player, ids, NARROW)
        assert page.run(f"mappingsOf(player, {list(ids)})") == mappings(player, ids)
        assert page.run("memoryOf(player, WIDE_GRID)") == memory(player)
        assert page.run("memoryOf(player, NARROW_GRID)") == memory(player, NARROW_GRID)
        assert page.run("tasksOf(player)") == tasks(player)
        assert page.run(f"inWords(player, {list(ids)})") == in_words(player, ids)
        assert page.run("memoryInWords(player)") == memory_in_words(player)


def test_changed_values_are_shown_old_and_new(page, story):
    session = story[0]
    event = next(
        e
        for e in session.reading("trace 0 end").events
        if (e.field, e.old, e.new) == ("_refcount", "2", "3")
    )
    goto(page, event.number)
    assert "refcount 2\u21923" in page.run("document.querySelector('#joined .frame.new').innerText")
    assert "_refcount 2 -> 3" in page.run(
        "document.querySelector('#calls .event.here').textContent"
    )
    assert page.run("document.querySelector('#changes tr.new').textContent").startswith(
        f"*#{event.number}"
    )


def test_the_chain_of_why_is_the_one_of_the_command(page, story):
    session = story[0]
    session.goto(session.timeline.records[COPY].last)
    why = session.reading("why pte child 0x10000")
    session.goto(session.end)
    goto(page, why.events[-1].number)
    links = page.run(
        "[...document.querySelectorAll('#why .chain li')].map((li) => "
        "Number(/#(\\d+)/.exec(li.textContent)[1]))"
    )
    assert links[::-1] == [event.number for event in why.events]
    assert page.run("document.getElementById('rule').textContent") == why.rule
    page.run("document.querySelector('#why a').click()")
    page.run("new Promise((done) => setTimeout(done, 20))")
    assert shown(page) == why.events[-2].number


# ---------------------------------------------------------------- for everyone, everywhere


def test_every_drawing_has_its_text(page):
    titles = page.run(
        "[...document.querySelectorAll('svg[role=img]')].map((svg) => "
        "svg.querySelector('title').textContent)"
    )
    assert len(titles) == 2
    assert titles[0].startswith("Page tables of app")
    page.run("document.querySelectorAll('details.alt').forEach((item) => { item.open = true; })")
    page.run("new Promise((done) => setTimeout(done, 50))")
    assert "pgd 0x" in page.run("document.getElementById('joinedtext').textContent")
    assert "KKKK" in page.run("document.getElementById('memorytext').textContent")


def is_light(page):
    colour = page.run("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", colour))) > 380


HOSTILE = ["/<script>alert(1)</script>", "/</script><!--", "/<img/src=x/onerror=alert(1)>", "/\u2028'&amp;", '/{a|b}"c"',
           "/\u0444\u0430\u0439\u043b", "/\u6587\u4ef6"]  # fmt: skip


@pytest.mark.parametrize("width", [1280, 768, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_the_window_in_both_looks(browser, story, width, dark):
    page = browser.open(story[1], width=width, dark=dark)
    assert page.run("document.documentElement.scrollWidth") <= width
    spare = page.run(
        "document.getElementById('joined').clientWidth - "
        "document.getElementById('joined').scrollWidth"
    )
    assert spare > -16 or width == 768  # there the drawing can be moved
    assert is_light(page) is not dark
    page.run("document.getElementById('look').click()")
    assert is_light(page) is dark


def test_no_text_of_the_drawing_is_cut_off(browser, story):
    for width in (1280, 390):
        page = browser.open(story[1], width=width)
        cut = page.run(
            "[...document.querySelectorAll('#joined td, #joined .frame, #joined caption')]"
            ".filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"
        )
        assert cut == []


def test_it_prints_in_dark_on_white(page):
    page.send("Emulation.setEmulatedMedia", media="print")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('.player')).display") == "none"
    assert page.paper().startswith(b"%PDF")
    assert page.run("document.querySelector('.joined svg').getAttribute('width')") == "860"


def test_a_hostile_name_is_only_text(browser, tmp_path):
    session = session_of("spawn app")
    for number, name in enumerate(HOSTILE):
        session.run(f"mkfile {json.dumps(name, ensure_ascii=False)} 1p")
        session.run(
            f"mmap app {0x10000 * (number + 1):#x} 1p r file {json.dumps(name, ensure_ascii=False)}"
        )
    path = tmp_path / "hostile.html"
    path.write_text(page_of(session, "</title><script>alert(2)</script>")[0], encoding="utf-8")
    page = browser.open(path)
    assert page.complaints == []
    assert page.requests == [path.as_uri()]
    assert page.run("document.scripts.length") == 2
    assert page.run("document.images.length") == 0
    assert page.run("document.title") == "</title><script>alert(2)</script>"
    page.run("go(film.last)")
    told = page.run(
        "[...document.querySelectorAll('#mappings td:last-child')].map((cell) => cell.textContent)"
    )
    assert told == [*HOSTILE, "[stack]"]
    assert page.run("[...document.querySelectorAll('ol.commands code')].length") == len(
        session.desk.shown
    )


def test_2000_events_open_in_two_seconds_and_five_megabytes(browser, tmp_path):
    session = session_of(LONG)
    assert session.end >= 2000
    path = tmp_path / "long.html"
    path.write_text(page_of(session)[0], encoding="utf-8")
    assert path.stat().st_size < 5_000_000
    page = browser.open(path)
    assert page.run("performance.getEntriesByType('navigation')[0].loadEventEnd") < 2000
    page.run("go(film.last)")
    assert shown(page) == session.end
