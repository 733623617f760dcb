"""Lessons: read them, take them, prove them, grade them.

    lessons/COURSE/NN-slug.md --parse--> Lesson --world--> a machine at the start of a step
    --guide--> what a student does
                                            |                                                     |
                                            +--lint, proof--> problems with file and line         +--> progress, transcript
                                                                                                        |
                                                                                     grade: the
                                                                                     same, replayed
                                                                                     from zero

A lesson is data: loading one runs no Python.  Its commands are the shell's, its conditions the
shell's expressions.
"""
