"""The page that needs nothing but itself: texts stay texts, data stays data."""

import json
from html.parser import HTMLParser

import pytest

from kemu.views.page import data_block, document, esc, safe_json

UGLY = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "-->",
    "]]>",
    "\"'`&amp;&lt;",
    "line\u2028and\u2029paragraph",
    "файл 文件 ملف",
    "\ud800 alone",
    "\x00\x07\x1b[31m",
]


class Reader(HTMLParser):
    """What a browser's parser makes of a page: the elements, and the text of each."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


@pytest.mark.parametrize("text", UGLY)
def test_a_text_never_becomes_an_element(text):
    reader = read(document(text, f"<p id='it'>{esc(text)}</p>"))
    assert [tag for tag, _ in reader.tags] == [
        "html",
        "head",
        "meta",
        "meta",
        "meta",
        "link",
        "title",
        "style",
        "body",
        "p",
    ]


@pytest.mark.parametrize("text", UGLY)
def test_data_is_read_back_as_it_was(text):
    block = data_block("data", {"name": text})
    reader = read(block)
    assert [tag for tag, _ in reader.tags] == ["script"]
    assert json.loads("".join(reader.texts)) == {"name": text}
    assert not set(block) & {"\u2028", "\u2029"}


def test_nothing_in_the_data_can_end_or_open_an_element():
    assert not set(safe_json(UGLY)) & set("<>&")


def test_characters_that_html_forbids_are_spelled_out():
    assert esc("\x00\x1b") == r"\x00\x1b"
    assert esc("\ud800") == r"\ud800"
    assert esc("tab\tand\nline") == "tab\tand\nline"


def test_the_page_forbids_every_request_and_names_no_address():
    page = document("t", "<p>x</p>", style="p{}", script="1;")
    assert "default-src 'none'" in page.replace("&#x27;", "'")
    assert "http:" not in page
    assert "https:" not in page
    assert "url(" not in page
    assert page.encode("utf-8")


def test_style_and_script_stand_in_their_elements():
    page = document("t", "<p>x</p>", style="p{color:red}", script="let a = 1;", lang="de")
    assert "p{color:red}</style>" in page
    assert "<script>\nlet a = 1;\n</script>" in page
    assert '<html lang="de">' in page
