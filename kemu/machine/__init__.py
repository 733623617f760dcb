"""Ring 1: the hardware.  RAM, page-table formats, the walk, TLBs, atomic operations, CPUs.  It
knows no kernel."""
