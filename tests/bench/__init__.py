"""How fast and how large kemu is, beside the real kernel.  ``python -m tests.bench --help``"""
