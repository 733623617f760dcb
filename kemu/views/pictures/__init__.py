"""The pictures drawn: as text, DOT and SVG; one module for each noun."""
