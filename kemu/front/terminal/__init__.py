"""The shell at a terminal, and how results are shown."""
