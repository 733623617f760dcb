"""Races in a session: parsed, explored, and replayed step by step."""
