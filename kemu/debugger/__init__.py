"""The debugger: where to stop, how to move, and what is shown afterwards."""
