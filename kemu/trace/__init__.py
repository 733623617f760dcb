"""Ring 0: recording.  Nothing here knows about the kernel, only that state changes and that
functions are entered and left."""
