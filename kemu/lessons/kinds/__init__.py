"""The kinds of step, one module each; `base` says what a kind is asked, `registry` finds them."""
