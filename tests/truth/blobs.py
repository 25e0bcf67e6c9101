# SPDX-License-Identifier: BSD-2-Clause
"""Reads BTF with LOC kinds by the tables of docs/formats, independently of Cairn."""
import struct

FIXED = {1: 4, 3: 12, 14: 4, 17: 4, 20: 4}
ELEMENT = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12, 20: 4, 21: 4, 22: 12}
FUNC, FUNC_PROTO, LOC_PARAM, LOC_PROTO, LOCSEC = 12, 13, 20, 21, 22
SIGNED, CONST, ADDR, REG, DEREF, OFFSET = 1, 2, 4, 8, 16, 32


class Blob:
    def __init__(self, data, base=None):
        magic, _, _, header, types, types_len, strings, strings_len = struct.unpack_from(
            '<HBBIIIII', data)
        assert magic == 0xeb9f
        self.base = base
        self.first = base.end if base else 1
        self.first_string = base.string_end if base else 0
        self.strings = data[header + strings:header + strings + strings_len]
        self.string_end = self.first_string + strings_len
        self.types = []
        at, end = header + types, header + types + types_len
        while at < end:
            name, info, ref = struct.unpack_from('<III', data, at)
            kind, vlen = info >> 24 & 0x7f, info & 0xffffff
            size = FIXED.get(kind, 0) + (vlen * ELEMENT.get(kind, 0) if kind != FUNC else 0)
            self.types.append(
                (kind, name, vlen, ref, struct.unpack_from(f'<{size // 4}I', data, at + 12)))
            at += 12 + size
        self.end = self.first + len(self.types)

    def type(self, number):
        return self.base.type(number) if number < self.first else self.types[number - self.first]

    def string(self, off):
        if off < self.first_string:
            return self.base.string(off)
        off -= self.first_string
        return self.strings[off:self.strings.index(b'\0', off)].decode()
