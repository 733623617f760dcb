"""Who executes instructions: user code as single accesses and system calls."""
