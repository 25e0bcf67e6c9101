# SPDX-License-Identifier: BSD-2-Clause
"""Where inlined copies of a kernel end: by objdump, libdw, and the kernel's tables.

Independent of Cairn's own search, and simpler: copies that it is not sure of are left out.
"""
import os
import re
import struct
import subprocess

import common

SILENT = {
    '__stack_chk_fail', 'panic', 'do_exit', 'make_task_dead', 'fortify_panic', '__fortify_panic',
    'usercopy_abort', 'do_group_exit', '__module_put_and_kthread_exit', 'kthread_exit'
}
RETURN = '__x86_return_thunk'
CONDITIONAL = re.compile(r'j(?!mp)|loop|xbegin')


def run(*words, told=None):
    return subprocess.run(words, input=told, capture_output=True, text=True, check=False).stdout


class Kernel:
    """A vmlinux, of which copies are asked for by the offsets @dies. @bare: the same without debug
    information, which objdump reads faster."""

    def __init__(self, vmlinux, folder, dies):
        self.bare = os.path.join(folder, 'bare')
        self.inlined = {}
        for line in run(common.dw_program('inlined'), vmlinux, told='\n'.join(dies)).splitlines():
            die, name, *ranges = line.split()
            self.inlined[int(die, 16)] = name, [
                tuple(int(at, 16) for at in low_high.split('-')) for low_high in ranges
            ]
        subprocess.run(
            ['objcopy', '--strip-debug', '-w', '-R', '.rela*', vmlinux, self.bare], check=True)
        self.symbols, self.sizes = {}, {}
        for line in run('nm', '-S', self.bare).splitlines():
            words = line.split()
            if len(words) >= 3:
                self.symbols[words[-1]] = int(words[0], 16)
                if len(words) == 4:
                    self.sizes[words[-1]] = int(words[1], 16)
        self.sections = [(int(at, 16), int(off, 16), int(n, 16))
                         for at, off, n in re.findall(r'\]\s+\S+\s+PROGBITS\s+(ffffffff\w+)\s+(\w+)\s+(\w+)',
                                                      run('readelf', '-SW', self.bare))]
        with open(self.bare, 'rb') as file:
            self.bytes = file.read()
        self.labels = {at: to for at, to in self.distances('__start___jump_table', '__stop___jump_table', 16)}
        self.faults = {}
        for at, to in self.distances('__start___ex_table', '__stop___ex_table', 12):
            self.faults.setdefault(at, set()).add(to)
        self.warnings = self.warns()
        self.alternatives = self.replaced()
        self.code = {}

    def table(self, start, stop):
        lo, hi = self.symbols[start], self.symbols[stop]
        at, off, _ = next(s for s in self.sections if s[0] <= lo < s[0] + s[2])
        return lo, self.bytes[off + lo - at:off + hi - at]

    def distances(self, start, stop, size):
        lo, data = self.table(start, stop)
        for i in range(0, len(data), size):
            a, b = struct.unpack_from('<ii', data, i)
            yield lo + i + a, lo + i + 4 + b

    def is_ud2(self, at):
        for lo, off, n in self.sections:
            if lo <= at < lo + n:
                return self.bytes[off + at - lo:off + at - lo + 2] == b'\x0f\x0b'
        return False

    def warns(self):
        lo, data = self.table('__start___bug_table', '__stop___bug_table')
        best = {}
        for size in (12, 16):
            entries = {
                lo + i + struct.unpack_from('<i', data, i)[0]: struct.unpack_from('<H', data, i + size - 2)[0]
                for i in range(0, len(data) - size + 1, size)
            }
            best[sum(self.is_ud2(at) for at in entries)] = entries
        return {at for at, flags in best[max(best)].items() if flags & 1}

    def replaced(self):
        """[(from, to)] of code that alternatives replace."""
        lo, data = self.table('__alt_instructions', '__alt_instructions_end')
        text = self.symbols['_text'], self.symbols['_end']
        for size in (12, 14):
            found = [(lo + i + struct.unpack_from('<i', data, i)[0], data[i + size - 2])
                     for i in range(0, len(data) - size + 1, size)]
            if len(data) % size == 0 and all(text[0] <= at < text[1] and n for at, n in found):
                return [(at, at + n) for at, n in found]
        return []

    def disassemble(self, symbol):
        """{address: (next address, words)} of a function, and of its cold part."""
        if symbol in self.code:
            return self.code[symbol]
        code = {}
        for name in [symbol] + [s for s in self.sizes if s.startswith(symbol + '.cold')]:
            lo = self.symbols[name]
            text = run('objdump', '-dw', '--no-show-raw-insn', f'--start-address={lo:#x}',
                       f'--stop-address={lo + self.sizes[name]:#x}', self.bare)
            lines = [(int(at, 16), words.split('#')[0].split()) for at, words in
                     re.findall(r'^(ffffffff\w+):\s+(.*)$', text, re.M)]
            for i, (at, words) in enumerate(lines):
                end = lines[i + 1][0] if i + 1 < len(lines) else lo + self.sizes[name]
                code[at] = end, words
        self.code[symbol] = code
        return code

    def ranges(self, die, function):
        """The code of a copy, by its DIE; None: it is not what was said."""
        name, ranges = self.inlined.get(int(die, 16), (None, None))
        return ranges if name == function and ranges else None


def successors(kernel, code, at):
    """Where control goes; None: that is not known, or it leaves the function."""
    end, words = code[at]
    while words and words[0] in ('notrack', 'bnd', 'rep', 'repz', 'lock', 'ds', 'cs', 'data16'):
        words = words[1:]
    name, target = words[0], re.search(r'(ffffffff\w+)', ' '.join(words[1:]))
    to = int(target.group(1), 16) if target else None
    found = set(kernel.faults.get(at, ()))
    if at in kernel.labels:
        found |= {kernel.labels[at], end}
    elif name in ('ret', 'retq') or (name == 'jmp' and f'<{RETURN}>' in words[-1]):
        return found
    elif name == 'ud2':
        if at in kernel.warnings:
            found.add(end)
    elif name == 'int3':
        return found
    elif name == 'jmp':
        if to is None or '*' in words[1]:
            return None
        found.add(to)
    elif CONDITIONAL.match(name):
        found |= {to, end}
    elif name == 'call' and target and re.search(r'<(\w+)>', words[-1]) and \
            re.search(r'<(\w+)>', words[-1]).group(1) in SILENT:
        pass
    else:
        found.add(end)
    return None if any(t not in code for t in found) else found


def is_return(kernel, code, at):
    return successors(kernel, code, at) == set() and code[at][1][0] in ('ret', 'retq', 'jmp')


def is_nop(kernel, code, at):
    return code[at][1][0].startswith(('nop', 'xchg')) and at not in kernel.labels and \
        'nop' in code[at][1][0]


def spread(start, edges, stop=()):
    seen, todo = set(start), list(start)
    while todo:
        for to in edges.get(todo.pop(), ()):
            if to not in seen and to not in stop:
                seen.add(to)
                todo.append(to)
    return seen


def exits(kernel, symbol, site, die, function):
    """{addresses} where a call of the copy has ended; None: not known here."""
    code, ranges = kernel.disassemble(symbol), kernel.ranges(die, function)
    if not ranges or site not in code:
        return None
    edges = {at: successors(kernel, code, at) for at in code}
    known = {at: to for at, to in edges.items() if to is not None}
    own = {at for at in code if any(a <= at < b for a, b in ranges) and not is_nop(kernel, code, at)}
    reached = spread([site], known, {site})
    # Moved ahead of the site in memory, it may be of the next call.
    forward = {at: {to for to in to if to > at} for at, to in known.items()}
    back = {}
    for at, to in forward.items():
        for t in to:
            back.setdefault(t, set()).add(at)
    ahead = spread([site], back)
    work = {at for at in own & reached if at not in ahead} | {site}
    before = {}
    for at in reached:
        for to in known.get(at, ()):
            before.setdefault(to, set()).add(at)
    before.pop(site, None)
    inside = spread(work, before)
    if any(edges[at] is None for at in inside) or any(
            a < at + 1 and at < b and any(w.startswith('j') for w in code[at][1][:1])
            for at in inside for a, b in kernel.alternatives if a - 256 < at < b):
        return None
    found, todo = set(), []
    for at in inside:
        if is_return(kernel, code, at):
            found.add(at)
        todo += [to for to in edges[at] if to not in inside or to == site]
    seen = set()
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        if at == site or edges[at] is None and at in kernel.labels:
            return None
        if at in kernel.labels or (is_nop(kernel, code, at) and not edges[at] & inside):
            todo += edges[at]
        else:
            found.add(at)
    return found
