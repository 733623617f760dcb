"""What carries out user code: performers."""
