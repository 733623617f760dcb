"""From empty RAM to a running kernel, and its table of system calls (init/)."""
