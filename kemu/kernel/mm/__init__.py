"""Memory management (mm/)."""
