"""The user interface above `commands`: the plain loop, the prompt, and how results are shown.

prompt-toolkit is imported in `repl.py`, `completer.py` and `prompt.py` only, and only at an
interactive terminal.
"""
