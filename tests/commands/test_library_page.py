"""The example of docs/library.md prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


def test_the_example_prints_what_the_page_says():
    text = PAGE.read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    expected = re.search(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == expected
