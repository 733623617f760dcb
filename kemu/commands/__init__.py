"""The shell's language: from a line to results. Imports nothing by itself.

tokens -> spec (one declaration a command) -> run -> result. `kinds` are the types of arguments; `lexer`, `expr` and `names`
the expression language; `table` says where each command lives; tasks, memory, access, files, looking, frames, moments and
general hold the commands.
"""
