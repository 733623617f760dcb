"""What an access says about the page that it got."""

from __future__ import annotations

from kemu.api import Session

FILE = "mkfile /f 3p 0; spawn ann; open ann /f rdwr; spawn bob; open bob /f rdwr"
SHARED = "mmap ann 0x10000 2p rw file /f shared; mmap bob 0x10000 2p rw file /f shared"


def test_a_page_of_a_file_comes_from_the_page_cache():
    session = Session()
    session.run(f"{FILE}; {SHARED}")
    texts = [session.text(f"read {name} 0x10000") for name in ("ann", "bob")]
    assert all("page cache: pfn" in text and "new page" not in text for text in texts), texts


def test_several_pages_of_a_file_are_counted():
    session = Session()
    session.run(f"{FILE}; {SHARED}")
    assert "2 of the page cache" in session.text("read ann 0x10000 2p")


def test_a_private_page_is_new_whatever_lies_behind_it():
    session = Session()
    session.run(f"{FILE}; mmap ann 0x10000 1p rw file /f; mmap ann 0x20000 1p rw")
    assert "new page: pfn" in session.text("write ann 0x10000 1b")
    assert "new page: pfn" in session.text("write ann 0x20000 1b")
