"""Wrong kernels: named one-place changes of the emulated kernel, to be found by whoever looks (mutants.py)."""
