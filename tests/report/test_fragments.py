"""The drawings of the situations are the ones that were reviewed."""

import pytest

from kemu.views.report import default_sides
from kemu.views.report_panels import map_lines, memory_in_words
from kemu.views.report_player import Player
from kemu.views.report_tables import MOST_ROWS, in_words, joined, summary
from tests.report.golden import FOLDER, fragments
from tests.report.plays import SITUATIONS, film_of, session_of


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation_is_drawn_as_reviewed(name):
    assert fragments(name) == (FOLDER / f"{name}.html").read_text(encoding="utf-8")


def drawn(text):
    session = session_of(text)
    film = film_of(session)
    player = Player(film).goto(film.last)
    return session, player, default_sides(player)


def test_the_map_of_ram_folds_as_mem_does():
    session, player, _ = drawn(SITUATIONS["after_one_copy"])
    shown = memory_in_words(player).split("\n")
    assert shown == session.text("mem").split("\n")[: len(shown)]


@pytest.mark.parametrize(
    ("frames", "letters"),
    [(1, {}), (64, {}), (65, {}), (640, {639: "K"}), (640, {0: "K"}), (130, {129: "T"})],
)
def test_the_lines_of_a_map_hold_all_frames(frames, letters):
    lines = map_lines(letters, frames, 64)
    assert sum(1 + line.skipped for line in lines) == -(-frames // 64)
    assert lines[0].at == 0
    assert lines[-1].at == (frames - 1) // 64 * 64
    assert (
        sum(len(line.letters) for line in lines) + sum(64 * line.skipped for line in lines)
        == frames
    )


def test_a_machine_of_four_tebibytes_is_mapped_without_writing_out_its_frames():
    assert len(map_lines({5: "K", 1 << 29: "T"}, 1 << 30, 64)) == 5


def test_frames_that_differ_are_not_drawn_as_one_run():
    alike = "spawn app; mmap app 0x10000 2p rw populate; fork app as child"
    assert "[16-17]" in joined(*drawn(alike)[1:])
    assert "[16-17]" not in joined(*drawn(alike + "; munmap child 0x11000 1p")[1:])


def test_a_large_process_is_folded_and_says_how_much():
    _, player, ids = drawn("spawn app; mmap app 0x200000 100p rw populate; fork app as child")
    assert "x100" in joined(player, ids)
    assert len(joined(player, ids)) < 10_000


def test_many_entries_that_differ_are_counted():
    writes = "; ".join(f"write app {0x10000 + 8192 * i:#x} {i}" for i in range(MOST_ROWS + 8))
    _, player, ids = drawn(f"spawn app; mmap app 0x10000 100p rw; {writes}")
    html = joined(player, ids)
    assert f"{MOST_ROWS + 8 - 7} more entries" in html
    assert f"{MOST_ROWS + 8 - 7} more entries" in in_words(player, ids)


def test_a_sentence_says_what_is_shared():
    _, player, ids = drawn(SITUATIONS["after_one_copy"])
    assert summary(player, ids).startswith(
        "Page tables of app and child: both lead to the frame 0x"
    )
    _, player, ids = drawn(SITUATIONS["fresh_process"])
    assert summary(player, ids) == "Page tables of app, which lead to no frame."
