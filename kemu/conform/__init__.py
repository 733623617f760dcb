"""Conformance: run programs here that the real kernel ran, and compare everything that was
observed."""
