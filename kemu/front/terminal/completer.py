"""Completion on Tab: a thin layer over `commands.expect`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion

from kemu.completion.expect import candidates

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

    from kemu.experiment.session import Session


class KemuCompleter(Completer):
    """Offers command names, then values for the command's arguments."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """The completions of the word before the cursor."""
        word, found = candidates(self.session, document.text_before_cursor)
        for text, meta in found:
            yield Completion(text, start_position=-len(word), display_meta=meta)
