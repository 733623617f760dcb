"""Performers of user code."""
