"""Conformance: programs that the real kernel ran are run again here, and everything that was
observed is compared."""
