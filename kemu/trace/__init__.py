"""Ring 0: recording.  It knows no kernel; it only knows that state changes and that functions are
entered and left."""
