"""One experiment: a kernel, its journal, its timelines and its names."""
