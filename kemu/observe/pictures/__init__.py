"""What the pictures show, read from the kernel: one module for each noun."""
