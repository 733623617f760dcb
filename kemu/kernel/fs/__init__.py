"""Programs and files: exec, binary formats, pipes, the small file system (fs/)."""
