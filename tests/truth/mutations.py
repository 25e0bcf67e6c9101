# SPDX-License-Identifier: BSD-2-Clause
"""Changes of ELF files, DWARF, call frames, BTF and jitdumps by their structure. Sizes stay, so
that most of a file is still as it was."""
import struct

# What lies at a limit of something.
NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000,
           0xfffff, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
           0x8000000000000000, 0xfffffffffffffff0, 0xffffffffffffffff)
# DW_FORM_*: those of DWARF 5, and GNU's of split and shared DWARF.
FORMS = (*range(1, 0x2d), 0x1f01, 0x1f02, 0x1f20, 0x1f21)
ATTRIBUTES = (1, 2, 3, 0xb, 0x11, 0x12, 0x1c, 0x20, 0x22, 0x2f, 0x31, 0x37, 0x38, 0x3e, 0x40, 0x47,
              0x49, 0x52, 0x55, 0x57, 0x58, 0x64, 0x69, 0x6e, 0x72, 0x73, 0x74, 0x76, 0x87, 0x8c,
              0x2116, 0x2137)
TAGS = (1, 4, 5, 0xa, 0xb, 0xd, 0xf, 0x11, 0x13, 0x15, 0x16, 0x17, 0x1c, 0x1d, 0x21, 0x24, 0x28,
        0x2e, 0x2f, 0x33, 0x34, 0x3c, 0x41, 0x48, 0x49, 0x4a)
# Fields (offset, bytes) of an ELF header, a section header, a program header, a compression header.
ELF_HEADER = ((16, 2), (18, 2), (32, 8), (40, 8), (54, 2), (56, 2), (58, 2), (60, 2), (62, 2))
SECTION_HEADER = ((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56,
                                                                                                 8))
PROGRAM_HEADER = ((0, 4), (4, 4), (8, 8), (16, 8), (32, 8), (40, 8), (48, 8))
COMPRESSED, NOBITS, NOTE = 1 << 11, 8, 7


def get(data, at, n):
    return int.from_bytes(data[at:at + n], 'little')


def put(data, at, n, value):
    if 0 <= at and at + n <= len(data):
        data[at:at + n] = (value % (1 << 8 * n)).to_bytes(n, 'little')


def another(value, n, how):
    """A number like @value, or one at a limit."""
    return how.choice(
        (value + 1, value - 1, value ^ 1 << how.randrange(8 * n), value * 2, value // 2, -value,
         how.choice(NUMBERS), how.choice(NUMBERS)))


def change_field(data, base, fields, how):
    at, n = how.choice(fields)
    put(data, base + at, n, another(get(data, base + at, n), n, how))
    return f'{n} bytes at 0x{base + at:x}'


def leb(data, at, end):
    """(number, where it ends)"""
    value = shift = 0
    while at < end:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            break
    return value, at


def put_leb(data, at, end, value):
    """In as many bytes as the old one has, if it fits."""
    n = leb(data, at, end)[1] - at
    for i in range(n):
        data[at + i] = value & 0x7f | (0x80 if i + 1 < n else 0)
        value >>= 7


# ---- sections ----

class Elf:
    def __init__(self, data):
        self.data = data
        self.sections = []
        at, size, n, names = get(data, 40, 8), get(data, 58, 2), get(data, 60, 2), get(data, 62, 2)
        if data[:5] != b'\x7fELF\x02' or size != 64 or at + n * size > len(data):
            return
        heads = [struct.unpack_from('<IIQQQQIIQQ', data, at + 64 * i) for i in range(n)]
        strings = heads[names][4] if names < n else 0
        for i, h in enumerate(heads):
            end = data.find(b'\0', strings + h[0])
            name = bytes(data[strings + h[0]:end]).decode(
                'latin-1') if 0 <= end < strings + h[0] + 200 else ''
            if h[1] != NOBITS and h[4] + h[5] <= len(data) and h[5]:
                self.sections.append((name, at + 64 * i, h[4], h[4] + h[5], h[2], h[1]))
        self.headers = [at + 64 * i for i in range(n)]

    def program_headers(self):
        at, n = get(self.data, 32, 8), get(self.data, 56, 2)
        return [at + 56 * i for i in range(n) if at + 56 * (i + 1) <= len(self.data)]


def change_word(data, lo, end, how):
    n = how.choice((1, 2, 4, 4, 8))
    at = lo + how.randrange(max(end - lo, 1)) // n * n
    put(data, at, n, another(get(data, at, n), n, how))
    return f'{n} bytes at 0x{at:x}'


def units(data, lo, end, limit=2000):
    """Where length fields stand, of units of DWARF, entries of call frames and the like: (at, where
    its fields begin, end)."""
    found = []
    while lo + 4 <= end and len(found) < limit:
        n, first = get(data, lo, 4), lo + 4
        if n == 0xffffffff:
            n, first = get(data, lo + 4, 8), lo + 12
        if first + n > end or (not n and found):
            break
        found.append((lo, first, first + n))
        lo = first + n
    return found


def change_unit(data, lo, end, how):
    """The header of a unit: length, version, type, sizes, offsets."""
    found = units(data, lo, end)
    if not found:
        return change_word(data, lo, end, how)
    at, first, _ = how.choice(found)
    return 'a unit: ' + change_field(data, at, ((0, 4), (first - at, 2), (first - at + 2, 1),
                                                (first - at + 3, 1), (first - at + 2, 4),
                                                (first - at + 4, 4), (first - at + 8, 8)), how)


def change_die(data, lo, end, how):
    """A byte or a word of a DIE: a code, an offset, a size."""
    found = units(data, lo, end)
    if not found or how.random() < 0.3:
        return change_unit(data, lo, end, how)
    _, first, last = how.choice(found)
    return 'a DIE: ' + change_word(data, first, last, how)


def change_abbrev(data, lo, end, how):
    """A tag, an attribute or a form becomes another one."""
    sites, at = [], lo
    while at < end and len(sites) < 20000:
        code, at = leb(data, at, end)
        if not code:
            continue
        sites.append((at, TAGS))
        at = leb(data, at, end)[1] + 1
        while at < end:
            attribute, form_at = leb(data, at, end)
            form, after = leb(data, form_at, end)
            if not attribute and not form:
                at = after
                break
            sites += [(at, ATTRIBUTES), (form_at, FORMS), (form_at, FORMS)]
            at = leb(data, after, end)[1] if form == 0x21 else after
    if not sites:
        return change_word(data, lo, end, how)
    at, values = how.choice(sites)
    put_leb(data, at, end, how.choice(values))
    return f'an abbreviation at 0x{at:x}'


def change_frames(data, lo, end, how):
    """A CIE or an FDE: its length, where its CIE is, augmentation, addresses, instructions."""
    found = units(data, lo, end)
    if not found:
        return change_word(data, lo, end, how)
    at, first, last = how.choice(found)
    site = how.choice((at, first, first + 4, first + 5, first + 8, first + 12,
                       first + how.randrange(max(last - first, 1))))
    n = how.choice((1, 4))
    put(data, site, n, another(get(data, site, n), n, how))
    return f'a frame entry at 0x{at:x}'


def change_btf(data, lo, end, how):
    """The header, or a record's kind, number of members, size or reference."""
    if get(data, lo, 2) != 0xeb9f or how.random() < 0.3:
        return 'BTF: ' + change_field(data, lo, ((2, 1), (3, 1), (4, 4), (8, 4), (12, 4), (16, 4),
                                                 (20, 4)), how)
    first = lo + get(data, lo + 4, 4) + get(data, lo + 8, 4)
    last, at, records = min(first + get(data, lo + 12, 4), end), first, []
    while at + 12 <= last:
        records.append(at)
        info = get(data, at + 4, 4)
        kind, n = info >> 24 & 0x1f, info & 0xffff
        at += 12 + {
            1: 4, 3: 12, 4: 12 * n, 5: 12 * n, 6: 8 * n, 13: 8 * n, 14: 4, 15: 12 * n, 17: 4, 19:
            12 * n
        }.get(kind, 0)
    if not records:
        return change_word(data, lo, end, how)
    at = how.choice(records)
    if how.random() < 0.3:
        put(data, at + 7, 1, how.randrange(24) | how.choice((0, 0x80)))
        return f'the kind of a BTF record at 0x{at:x}'
    return 'a BTF record: ' + change_field(data, at,
                                           ((0, 4), (4, 2), (8, 4), (12, 4), (16, 4), (20, 4)), how)


def change_notes(data, lo, end, how):
    at, found = lo, []
    while at + 12 <= end:
        found.append(at)
        at += 12 + (get(data, at, 4) + 3 & ~3) + (get(data, at + 4, 4) + 3 & ~3)
    at = how.choice(found or [lo])
    if how.random() < 0.5:
        return 'a note: ' + change_field(data, at, ((0, 4), (4, 4), (8, 4)), how)
    size = get(data, at + 4, 4)
    return 'a note: ' + change_word(data, at + 20, min(at + 20 + max(size, 1), end), how)


def change_jitdump(data, how):
    """The header, the head of a record, a field or a word of one, or the call frames of an
    unwinding record."""
    at, records = get(data, 8, 4), []
    while at + 16 <= len(data) and len(records) < 2000:
        number, size = get(data, at, 4), get(data, at + 4, 4)
        if size < 16 or at + size > len(data):
            break
        records.append((at, number, size))
        at += size
    way = how.random()
    if not records or way < 0.1:
        return 'jitdump: ' + change_field(data, 0,
                                          ((0, 4), (4, 4), (8, 4), (12, 4), (20, 4), (32, 8)), how)
    at, number, size = how.choice(records)
    if way < 0.25:
        return f'record {number}: ' + change_field(data, at, ((0, 4), (4, 4)), how)
    if number == 4 and way < 0.7:
        return 'unwinding: ' + change_frames(data, at + 40, at + size, how)
    fields = [(offset, 8) for offset in range(16, min(size - 7, 72), 8)]
    if fields and way < 0.8:
        return f'record {number}: ' + change_field(data, at, fields, how)
    return f'record {number}: ' + change_word(data, at, at + size, how)


READERS = (('.debug_abbrev', change_abbrev), ('.debug_info', change_die),
           ('.debug_types', change_die), ('.debug_', change_unit), ('.eh_frame_hdr', change_word),
           ('.eh_frame', change_frames), ('.BTF', change_btf))


def change_inside(data, section, how):
    name, _, lo, end, flags, kind = section
    if flags & COMPRESSED:
        return f'{name}, compressed: ' + change_field(data, lo,
                                                      ((0, 4), (8, 8), (16, 8), (24, 1)), how)
    if kind == NOTE:
        return f'{name}: ' + change_notes(data, lo, end, how)
    for prefix, change_it in READERS:
        if name.startswith(prefix):
            return f'{name}: ' + change_it(data, lo, end, how)
    return f'{name}: ' + change_word(data, lo,
                                     min(end, lo + 4096) if how.random() < 0.5 else end, how)


def exchange(data, elf, how):
    """Two section headers change sites, or one gets the other's bytes."""
    a, b = how.choice(elf.headers), how.choice(elf.headers)
    if how.random() < 0.5:
        data[a:a + 64], data[b:b + 64] = data[b:b + 64], data[a:a + 64]
        return 'two sections exchanged'
    data[a + 24:a + 40] = data[b + 24:b + 40]
    return 'two sections of the same bytes'


# Sections whose readers are many; others are mostly code and strings.
def is_rich(section):
    return section[0].startswith(('.debug', '.eh_frame', '.BTF', '.cairn', '.note', '.gnu',
                                  '.symtab', '.sframe', '.gopclntab', '.dynamic', '.zdebug'))


def change(data, how):
    """One change of @data, in place. Returns what it was."""
    if get(data, 0, 2) == 0xeb9f:
        return change_btf(data, 0, len(data), how)
    if get(data, 0, 4) == 0x4a695444:
        return change_jitdump(data, how)
    elf = Elf(data)
    segments = elf.program_headers() if elf.sections or data[:4] == b'\x7fELF' else []
    notes = [(get(data, p + 8, 8), get(data, p + 32, 8)) for p in segments if get(data, p, 4) == 4]
    way = how.random()
    if way < 0.05:
        return 'ELF header: ' + change_field(data, 0, ELF_HEADER, how)
    if way < 0.15 and segments:
        return 'segment: ' + change_field(data, how.choice(segments), PROGRAM_HEADER, how)
    if not elf.sections or (get(data, 16, 2) == 4 and way < 0.8):
        lo, n = how.choice(notes or [(0, len(data))])
        return change_notes(data, lo, min(lo + n, len(data)), how)
    if way < 0.25:
        return 'section: ' + change_field(data, how.choice(elf.sections)[1], SECTION_HEADER, how)
    if way < 0.3:
        return exchange(data, elf, how)
    rich = [s for s in elf.sections if is_rich(s)]
    return change_inside(data, how.choice(rich if rich and way < 0.95 else elf.sections), how)
