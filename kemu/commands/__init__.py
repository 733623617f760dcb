"""The words of the shell, one module for each noun. `table` says where each lives; `run` runs a
line.

How a line becomes a bound call is in `kemu.language`.
"""
