"""Ring 2: the kernel, flat, one story per file, each function under Linux's own name."""
