"""Ring 2: the kernel in Linux's own folders, one story per file, each function under Linux's own
name."""
