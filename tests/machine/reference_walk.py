"""The walk once more, written from the manuals and not from kemu: what the tests compare it with.

``words`` maps the physical address of an entry to the entry.  The result of either function is
("fault", error code, nothing) or ("ok", physical address, {entry address: bits that the CPU sets}).
"""

READ, WRITE, FETCH = 0, 1, 2


def x86(words, root, va, access, *, user, ac, levels):
    """Intel SDM volume 3, 4.5 to 4.8, as Linux runs it: WP, NXE, SMEP, SMAP and (bits 51:12 all
    present) on."""
    code = (4 if user else 0) + {READ: 0, WRITE: 2, FETCH: 16}[access]
    shifts = [48, 39, 30, 21, 12][-levels:]
    table, writable, for_user, executable = root, True, True, True
    used = []
    for shift in shifts:
        place = table + ((va >> shift) % 512) * 8
        entry = words.get(place, 0)
        if entry % 2 == 0:
            return "fault", code, {}
        large = shift != 12 and entry & 0x80
        if large and shift > 30:
            return "fault", code + 9, {}
        if large and any(entry >> n & 1 for n in range(13, shift)):
            return "fault", code + 9, {}
        writable &= bool(entry & 2)
        for_user &= bool(entry & 4)
        executable &= not entry >> 63
        used.append((place, entry, shift))
        if large or shift == 12:
            break
        table = entry & 0x000F_FFFF_FFFF_F000
    if not _x86_allows(access, user, ac, (writable, for_user, executable)):
        return "fault", code + 1, {}
    place, entry, shift = used[-1]
    page = entry & 0x000F_FFFF_FFFF_F000
    sets = {at: 0x20 for at, _, _ in used}
    if access == WRITE:
        sets[place] |= 0x40
    return "ok", page >> shift << shift | va % (1 << shift), sets


def _x86_allows(access, user, ac, rights):
    writable, for_user, executable = rights
    if user and not for_user:
        return False
    if access == FETCH:
        return executable and (user or not for_user)
    if not user and for_user and not ac:
        return False
    return access == READ or writable


def sv39(words, root, va, access, *, user, sum_):
    """RISC-V privileged specification, 4.3.2, with hardware that sets A and D, MXR off."""
    code = (4 if user else 0) + {READ: 0, WRITE: 2, FETCH: 16}[access]
    table = root
    for shift in (30, 21, 12):
        place = table + ((va >> shift) % 512) * 8
        pte = words.get(place, 0)
        r, w, x, u = (pte >> n & 1 for n in (1, 2, 3, 4))
        if not pte & 1:
            return "fault", code, {}
        if pte >> 54 & 0x7F or (w and not r):
            return "fault", code + 9, {}
        frame = pte >> 10 & ((1 << 44) - 1)
        if not (r or x):
            table = frame << 12
            continue
        if frame % (1 << (shift - 12)):
            return "fault", code + 9, {}
        if (
            not {READ: r, WRITE: w, FETCH: x}[access]
            or (user and not u)
            or (not user and u and (access == FETCH or not sum_))
        ):
            return "fault", code + 1, {}
        return "ok", frame << 12 | va % (1 << shift), {place: 0xC0 if access == WRITE else 0x40}
    return "fault", code, {}
