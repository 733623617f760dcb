"""Where to stop, how to move, and what is shown afterwards."""
