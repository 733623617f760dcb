"""Where the lessons are.

    installed from a wheel      site-packages/kemu/_lessons/
    a checkout, also when       checkout/lessons/          beside checkout/kemu/
    installed with -e

The lessons are data beside the code, not a package. The build copies them into the wheel
(``pyproject.toml``, ``force-include``); a checkout keeps them where authors edit them.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def lessons_folder(package: Path = _PACKAGE) -> Path:
    """The folder of the lessons that belong to the kemu in ``package``.

    Raises FileNotFoundError, naming both places, if the installation has lost it.
    """
    places = (package / "_lessons", package.parent / "lessons")
    for place in places:
        if place.is_dir():
            return place
    raise FileNotFoundError(
        f"kemu's lessons are in neither {places[0]} nor {places[1]}: install kemu again"
    )
