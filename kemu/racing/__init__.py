"""Races in a session: what is asked for, explored, and played step by step."""
