"""The system-call interface as data: one row per call, one definition per number.

    uapi.py     numbers under Linux's names (PROT_*, MAP_*, errnos, signals, sizes)
    words.py    the words that the shell and recordings use for them
    row.py      the fields of a row
    memory.py, files.py, tasks.py    the rows
    calls.py    all rows, by name and by word

Imports nothing of kemu, which keeps start-up fast.
"""
