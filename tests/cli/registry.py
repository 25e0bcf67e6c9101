# SPDX-License-Identifier: BSD-2-Clause
"""The codectl registry of another process, read by the letter of cairn/shared/codectl.h and with
nothing of our reader."""

import os
import struct

HEAD = struct.Struct("<8sIIQQQIIQ")
ENTRY = struct.Struct("<QQQQII")
ELF = struct.Struct("<QQQQQQQQQIIQQII")
JIT = struct.Struct("<QQQQQQQQIIQ")
OPTION_ELF, OPTION_JIT = 1, 2


class Process:
    def __init__(self, pid):
        self.pid = pid
        self.mem = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def close(self):
        os.close(self.mem)

    def read(self, at, n):
        return os.pread(self.mem, n, at)

    def text(self, at):
        return self.read(at, 4096).split(b"\0")[0].decode() if at else ""

    def maps(self):
        """(lo, hi, permissions, path) of each mapping."""
        found = []
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as file:
            for line in file:
                words = line.rstrip("\n").split(None, 5)
                lo, hi = (int(x, 16) for x in words[0].split("-"))
                found.append((lo, hi, words[1], words[5] if len(words) > 5 else ""))
        return found

    def registries(self):
        """Where they begin: one for each copy of the library."""
        return [lo for lo, _, _, path in self.maps()
                if path.startswith("/memfd:cairn-codectl") and self.read(lo, 8) == b"codectl\0"]

    def entries(self):
        """Valid registrations, as dictionaries."""
        found = []
        for at in self.registries():
            _, _, _, _, _, entries, stride, n, _ = HEAD.unpack(self.read(at, HEAD.size))
            for i in range(n):
                data = self.read(entries + i * stride, stride)
                epoch, _, since, _, option, _ = ENTRY.unpack_from(data)
                if epoch:
                    found.append(
                        self.entry(option, data[ENTRY.size:]) | {"epoch": epoch, "since": since})
        return found

    def entry(self, option, info):
        if option == OPTION_ELF:
            (elf, elf_end, lo, hi, sframe, _, path, build_id, link, n_build_id, crc, unwind, _,
             kind, _) = ELF.unpack_from(info)
            return {
                "option": option, "elf": elf, "elf_end": elf_end, "lo": lo, "hi": hi, "sframe":
                sframe, "path": self.text(path), "build_id":
                self.read(build_id, n_build_id).hex() if build_id else "", "link": self.text(link),
                "crc": crc, "unwind": unwind, "kind": kind
            }
        lo, hi, head, _, symbols, _, unwind, end, kind, flags, name = JIT.unpack_from(info)
        return {
            "option": option, "lo": lo, "hi": hi, "head": head, "symbols": symbols, "unwind":
            unwind, "unwind_end": end, "kind": kind, "flags": flags, "name": self.text(name)
        }

    def objects(self):
        return {e["path"]: e for e in self.entries() if e["option"] == OPTION_ELF}

    def regions(self):
        return sorted((e for e in self.entries() if e["option"] == OPTION_JIT),
                      key=lambda e: e["lo"])
