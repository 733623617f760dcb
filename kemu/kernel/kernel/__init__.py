"""Tasks: fork, exit, scheduling, signals (kernel/)."""
