"""The shapes of tokens: which is a name, which an expression.

a plain word, `app.2`                      a name
starts with a digit, $ or (, or
holds a dot or an operator                 an expression
PROT_READ|PROT_WRITE                       neither: flags as C spells them
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kemu.language.tokens import Token

_NAME = re.compile(r"[A-Za-z_]\w*(\.\d+)*\Z", re.ASCII)
_OPERATORS = frozenset(".+-*/%&|^<>~()=!")
_C_FLAGS = re.compile(r"[A-Z]+_[A-Z0-9_]+(\|[A-Z]+_[A-Z0-9_]+)*\Z", re.ASCII)
_BARE = re.compile(r"[0-9$(]|[A-Za-z_]\w*(\.\w+)*[.(]", re.ASCII)


def is_name(token: Token) -> bool:
    """A plain word, or the name of an unnamed child such as `app.2`."""
    return not token.quoted and bool(_NAME.match(token.text))


def is_c_flags(token: Token) -> bool:
    """Flags as C spells them: `PROT_READ|PROT_WRITE`."""
    return not token.quoted and bool(_C_FLAGS.match(token.text))


def is_expression(token: Token) -> bool:
    """Starts with a digit, `$` or `(`, or holds a dot or an operator, and is not a name."""
    if token.quoted or is_name(token) or is_c_flags(token) or token.text.startswith("@"):
        return False
    return token.text[0] in "$(0123456789" or bool(_OPERATORS & set(token.text))


def opens_expression(token: Token) -> bool:
    """An expression that cannot be a command: `3p`, `$1`, `(1 + 2)`, `kid.rss`, `pfn(kid, 0)`."""
    return is_expression(token) and bool(_BARE.match(token.text))
