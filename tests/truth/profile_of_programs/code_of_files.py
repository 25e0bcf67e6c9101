# SPDX-License-Identifier: BSD-2-Clause
"""What the bytes of ELF files say of a caller and its callee, read with readelf and objdump and not
with Cairn's code.

A return address has a call before it. If the call has a fixed target, that is where the callee
begins; or the callee is reached from there by jumps that leave functions (tail calls, PLT stubs,
parts that a compiler split off).
"""
import bisect
import re
import struct
import subprocess

# How far tail calls are followed: each step is a function that is disassembled.
FURTHEST = 12

CALL = re.compile(r'\s+([0-9a-f]+):\t(?:notrack |bnd |data16 |addr32 |rex\.?\w* )*call\w?\s+(.*)')
JUMP = re.compile(r'\s+([0-9a-f]+):\t(?:notrack |bnd |repz |repnz )*(j\w+)\s+(.*)')


def text_of(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False).stdout.decode('utf-8', 'replace')


class File:
    """An ELF file: its functions by the rows of .eh_frame, its instructions, the names of its stubs
    and of what it exports."""

    def __init__(self, path):
        self.path = path
        with open(path, 'rb') as file:
            self.bytes = file.read()
        self.segments, self.rows = [], None
        self.entry, at = struct.unpack_from('<QQ', self.bytes, 24)
        for i in range(struct.unpack_from('<H', self.bytes, 56)[0]):
            kind, _, offset, vaddr, _, size = struct.unpack_from('<IIQQQQ', self.bytes, at + 56 * i)
            if kind == 1:
                self.segments.append((vaddr, offset, size))
            if kind == 0x6474e550:
                self.rows = vaddr
        self.starts, self.ends = self.read_functions()
        self.sections = self.read_sections()
        self.names, self.indirect = self.read_names()
        self.jumps, self.stubs = {}, None

    def read(self, at, n):
        for vaddr, offset, size in self.segments:
            if vaddr <= at and at + n <= vaddr + size:
                return self.bytes[offset + at - vaddr:offset + at - vaddr + n]
        return b''

    def read_functions(self):
        """By the sorted table of .eh_frame_hdr, as all linkers write it."""
        if self.rows is None or self.read(self.rows, 4) != b'\x01\x1b\x03\x3b':
            return [], []
        n = struct.unpack('<I', self.read(self.rows + 8, 4))[0]
        ranges = {}
        for start, row in struct.iter_unpack('<ii', self.read(self.rows + 12, 8 * n)):
            length = struct.unpack('<I', self.read(self.rows + row + 12, 4))[0]
            ranges[self.rows + start] = self.rows + start + length
        return sorted(ranges), [ranges[start] for start in sorted(ranges)]

    def read_sections(self):
        found = re.findall(r'\] (\S+)\s+\w+\s+([0-9a-f]{16}) [0-9a-f]+ ([0-9a-f]+)',
                           text_of('readelf', '-SW', self.path))
        return [(int(at, 16), int(at, 16) + int(size, 16), name)
                for name, at, size in found
                if int(at, 16)]

    def read_names(self):
        names, indirect = {}, set()
        for line in text_of('readelf', '-W', '--dyn-syms', self.path).splitlines():
            words = line.split()
            if len(words) == 8 and words[6] != 'UND' and words[3] in ('FUNC', 'IFUNC', 'NOTYPE'):
                name = words[7].split('@')[0]
                names.setdefault(int(words[1], 16), set()).add(name)
                if words[3] == 'IFUNC':
                    indirect.add(name)
        return names, indirect

    def function(self, at):
        """[lo, hi) of the function around @at, or None."""
        i = bisect.bisect(self.starts, at) - 1
        return (self.starts[i], self.ends[i]) if i >= 0 and at < self.ends[i] else None

    def section(self, at):
        return next((name for lo, hi, name in self.sections if lo <= at < hi), '')

    def is_start(self, at):
        """In the function at which the kernel lets the file begin. In Debian's programs it has no
        name."""
        around = self.function(at)
        return bool(around and around[0] == self.entry)

    def is_stub(self, at):
        return self.section(at).startswith('.plt')

    def stub(self, at):
        """The name that the PLT stub at @at leads to, or None."""
        if self.stubs is None:
            found = re.findall(
                r'^([0-9a-f]+) <(.+?)(?:@plt|@@?\S*@plt)>:',
                text_of('objdump', '-d', '-j', '.plt', '-j', '.plt.sec', '-j', '.plt.got',
                        self.path), re.M)
            self.stubs = {int(address, 16): name.split('@')[0] for address, name in found}
        return self.stubs.get(at)

    def disassemble(self, lo, hi):
        return text_of('objdump', '-d', '-w', '--no-show-raw-insn', f'--start-address={lo:#x}',
                       f'--stop-address={hi:#x}', self.path).splitlines()

    def looks_like_call(self, back):
        """('direct', target), ('indirect', None) or None: what the bytes before @back may be. They
        may be the end of something else."""
        before = self.read(back - 8, 8)
        if before[-5:-4] == b'\xe8':
            return 'direct', back + struct.unpack('<i', before[-4:])[0]
        for n in range(2, 8):
            if before[-n:-n + 1] == b'\xff' and before[-n + 1] >> 3 & 7 == 2:
                return 'indirect', None
        return None

    def is_signal_return(self, at):
        """mov $15, %rax; syscall: what the kernel lets a handler return to."""
        return self.read(at, 9) == b'\x48\xc7\xc0\x0f\0\0\0\x0f\x05'

    def call_before(self, back):
        """The same, by all instructions of the function."""
        around = self.function(back - 1)
        if not around:
            return self.looks_like_call(back)
        lines = self.disassemble(around[0], max(back, around[1]))
        for line, after in zip(lines, lines[1:] + ['']):
            match = CALL.match(line)
            following = re.match(r'\s+([0-9a-f]+):', after)
            if not match or (int(following.group(1), 16) if following else around[1]) != back:
                continue
            target = re.match(r'([0-9a-f]+)\b',
                              match.group(2)) if '*' not in match.group(2) else None
            return ('direct', int(target.group(1), 16)) if target else ('indirect', None)
        return None

    def ways_out(self, lo, hi):
        """(targets outside of [lo, hi) of its jumps, whether one of them is computed)"""
        if lo not in self.jumps:
            targets, computed = set(), False
            for line in self.disassemble(lo, hi):
                match = JUMP.match(line)
                if match and '*' in match.group(3):
                    computed = True
                elif match and re.match(r'[0-9a-f]+\b', match.group(3)):
                    target = int(match.group(3).split()[0], 16)
                    if not lo <= target < hi:
                        targets.add(target)
            self.jumps[lo] = targets, computed
        return self.jumps[lo]


class Files:
    """All that were opened."""

    def __init__(self):
        self.by_path, self.judged = {}, {}

    def file(self, path):
        if path not in self.by_path:
            self.by_path[path] = File(path)
        return self.by_path[path]

    def judge(self, caller, callee):
        """One word for a pair of (path, address); the caller's is the last byte of its call. What
        contradicts begins with 'no '."""
        key = caller, callee
        if key not in self.judged:
            self.judged[key] = self.look(caller, callee)
        return self.judged[key]

    def look(self, caller, callee):
        file, back = self.file(caller[0]), caller[1] + 1
        kind = file.looks_like_call(back)
        if kind and kind[0] == 'direct' and self.reached(file, kind[1], callee).startswith('no '):
            kind = None
        kind = kind or file.call_before(back)
        if not kind:
            return 'no call before the return address'
        if kind[0] != 'direct':
            return kind[0]
        return self.reached(file, kind[1], callee)

    def reached(self, file, target, callee):
        """Whether the function of @callee is reached from @target by jumps out of functions."""
        other = self.file(callee[0])
        around = other.function(callee[1])
        todo, seen = [(file, target)], set()
        is_open = False
        while todo and len(seen) < FURTHEST * 20:
            at_file, at = todo.pop(0)
            if (at_file.path, at) in seen:
                continue
            seen.add((at_file.path, at))
            if at_file is other and (around and around[0] <= at < around[1]
                                     or other.is_stub(at) and other.is_stub(callee[1])):
                return 'direct' if len(seen) == 1 else 'by a tail call'
            if at_file.is_stub(at):
                name = at_file.stub(at)
                if not name or name in other.indirect or not around:
                    return 'by a stub that is not followed'
                if name in other.names.get(around[0], ()):
                    return 'by a stub'
                found = [start for start, names in other.names.items() if name in names]
                # Another file's function of this name jumps on, or the loader chose another one of
                # the name.
                todo += [(other, start) for start in found]
                is_open |= not found
                continue
            inside = at_file.function(at)
            if not inside:
                is_open = True
                continue
            targets, computed = at_file.ways_out(*inside)
            is_open |= computed
            todo += [(at_file, target) for target in targets]
        return 'by a jump that is computed' if is_open or todo else 'no way from the call to the callee'
