"""Emphasis in the text of a lesson may go over the end of a line, and code is left alone."""

from __future__ import annotations

import re

import pytest

from kemu.views.lessons import wrapped
from kemu.views.style import style_for

TEXTS = [
    (
        "Both begin alike: **find the promise, check the right**. Under `do_wp_page` the first has "
        "*copy on write*."
    ),
    "开头一样 **找承诺 查权限** 第一棵的 `do_wp_page` 下面有**去掉页表项的一个很长很长的句子**。",
    "2 * 3 * 4 and `a*b*c` and `**p`",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("width", [40, 44, 60, 80])
def test_no_line_shows_a_mark_and_every_colour_ends_on_its_line(text, width):
    plain = wrapped(text, style_for("utf-8", width=width, colour=False))
    coloured = wrapped(text, style_for("utf-8", width=width, colour=True))
    assert not [line for line in plain if "\x01" in line or "\x02" in line or "**f" in line]
    assert [re.sub(r"\x1b\[\d*m", "", line) for line in coloured] == plain
    assert all(line.count("\x1b[0m") * 2 == line.count("\x1b[") for line in coloured)


def test_code_and_products_keep_their_stars():
    assert wrapped(TEXTS[2], style_for("utf-8", width=80, colour=False)) == [TEXTS[2]]
