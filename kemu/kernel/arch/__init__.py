"""What the architecture decides: entry, page-table entries, TLBs, user access, layout (arch/)."""
