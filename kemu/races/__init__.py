"""Wrong kernels, and every order in which CPUs can take their steps.

    mutants, wrong/               small named patches of the emulated kernel, for someone to find
    litmus, programs, reduction  small programs: all schedules counted over their states, and how few runs would do
    fibres, baton                 kernel functions on call stacks that pass a baton
    explorer, checking            one run a schedule, invariants along every event
    replay, stage, schedule      one schedule played on a journal, to be walked through; schedules as text

docs/races.md has the theory, and what all this cannot find.
"""
