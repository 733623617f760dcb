"""The file: what a lesson, a course and a translation hold, and how they are read and written."""
