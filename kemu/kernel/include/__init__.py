"""Structures, flags, lists and numbers (include/linux, include/uapi), and the kernel's globals."""
