"""What lies between a person and `commands`: the plain loop, the prompt, and how results are
shown.

prompt-toolkit is imported in `repl.py`, `completer.py` and `prompt.py` only, and only where a
person sits at a terminal.
"""
