"""Looking at a kernel: each function fills one reading and changes nothing.

    from kemu.observe.tasks import process_list          reading = process_list(kernel, names)

``kernel`` is a ``kemu.kernel.init.boot.Kernel`` that is active (``kernel.activate()``); a task is a
``task_struct``; addresses are ints; ``names`` (pid -> what the user calls the task) defaults to
each task's ``comm``.  Addresses and frame numbers may be any int: the reading says what does not
exist, or ``UsageError`` is raised if there is nothing to report.

    tasks        process_list(kernel, names)       task_tree(kernel, names)
                 task(kernel, task, names)         registers(kernel, task, names)
    space        address_space(task, names)        mm(kernel, task, names)
                 vma(task, addr, names)            layout(kernel, task, names)
    procfs       smaps(kernel, task, names)        smaps_rollup(kernel, task, names)
                 status(kernel, task)              stat(kernel, task)
                 statm(task)                       pagemap(kernel, task, start, end, names)
    translation  walk(kernel, task, addr, names)   dump(kernel, task, addr, size, names)
                 page_tables(kernel, task, names, kernel_half=False)
    frames       frame(kernel, pfn, names)         rmap(kernel, pfn, names)
                 memory_map(kernel, names)         free(kernel)
                 tlb(kernel, names)
    pictures/    walk.walk(kernel, task, addr, names)   walk.toy_walk(ram, geometry, root, addr)
                 sharing.sharing(kernel, tasks, names)  spaces.mm(kernel, task, names)
                 spaces.family(kernel, names)           frames.rmap(kernel, pfn, names)
                 frames.counts(kernel)
    events       events(kernel, first, last, names, low=False)
                 one_event(kernel, number, names)
    calls        calls(kernel, first, last, names, marks=None, with_events=False, low=False)
    difference    diff(kernel, first, last, names, low=False)

The last three look at other moments: they move the journal's cursor and bring it back.  ``low``
asks for the events of the lowest level too (links of lists).

Nothing here assigns to a field of the kernel or calls a function that has a frame.
"""
