"""Taking a lesson: the machine of a step, what is typed, what is said, what is kept."""
