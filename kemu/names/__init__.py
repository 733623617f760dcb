"""What names and functions mean in an expression, asked of a session."""
