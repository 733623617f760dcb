"""From a line to a bound call: words, expressions, types of arguments, declarations, errors."""
