"""Wrong kernels, and every order in which CPUs can take their steps.

    mutants, wrong/          small named patches of the emulated kernel, bugs to find
    litmus, programs         small programs: all schedules, counted over their states
    reduction                how few runs would be enough
    fibres, baton            kernel functions on call stacks that pass a baton
    explorer, checking       one run per schedule, invariants along every event
    replay, stage            one schedule played on a journal, to be walked through
    schedule                 schedules as text

docs/races.md has the theory, and the limits of the method.
"""
