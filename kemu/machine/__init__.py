"""Ring 1: the hardware.  RAM, page-table formats, the walk, TLBs, atomic operations, CPUs.  Nothing
here knows about the kernel."""
