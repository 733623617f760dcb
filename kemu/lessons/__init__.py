"""Lessons: read them, take them, prove them, grade them.

    lessons/COURSE/NN-slug.md
      | format    what a file holds, and how it is read and translated
      v
    Lesson, of steps; each is of one of the kinds (`kinds`: one class each)
      | taking    the machine of a step, what is typed, what is said, what is kept
      v
    progress, transcript
      | grading   the same, replayed from scratch
      v
    grades                      making    begin, check, prove, pack, export a lesson

A lesson is data: loading one runs no Python.  Its commands are the shell's, its conditions the
shell's expressions.
"""
