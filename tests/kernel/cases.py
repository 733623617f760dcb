"""The situations of the six topics that the ``test_cases_*`` modules play, and those that wait for
a feature.

A test names its situation in the docstring ("Case A01"); ``MISSING`` says what kemu lacks for the
others.
"""

TOPICS = {
    "fork_cow": [
        "A01",
        "A03",
        "A05",
        "A07",
        "A10",
        "A12",
        "A14",
        "A16",
        "A17",
        "A20",
        "A21",
        "A23",
    ],
    "demand_paging": ["C02", "C05", "C07", "C08"],
    "vma_ops": ["D02", "D05", "D06", "D09", "D10", "D13", "D14"],
    "signals": ["E02", "E04", "E06", "E08", "E09"],
    "stack": ["F01", "F03", "F04"],
    "lifecycle": ["I02", "I04", "I06", "I08", "I10"],
}

MISSING: dict[str, str] = {}
