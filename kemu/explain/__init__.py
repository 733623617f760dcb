"""Why: who wrote a value, by which rule, which check made a call fail, what copy-on-write saved."""
