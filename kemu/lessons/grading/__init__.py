"""For teachers: read what was handed in, repeat it, and write the grades."""
