#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""SFrame made of .eh_frame, against SFrame that the assembler makes of the same code.

    sframe_against_gas.py [SEEDS]      4 generated programs, each built in several ways, unless told otherwise

The newest gas writes version 3 (--gsframe-3), the linker joins it. From a copy without that section
`cairn unwind encode --embed` makes ours, in versions 2 and 3. The newest readelf prints all three,
and for each function the rows have to be the same ones; so it is also shown that readelf, and
objdump, read ours. Version 1 is what Debian 12's gas writes: it is read by us, and held against
version 2 of our own.

What may differ, each counted:
  linker       functions of the linker (.plt, .plt.got): it writes one row for each entry of a table, with a mask, and we rows by address
  only ours    gas leaves out functions that have CFI it does not take
  repeated     gas writes a row again where only a register changes that SFrame does not have; such rows are left out on both sides
  mended       GCC says of the end of a function that aligned its stack anew that the frame pointer is in memory at itself, and gas writes that. We do not:
               the instructions give it back to the caller, which is looked up in objdump's text for each such row
Everything else is a difference, and fails.
"""
import collections
import json
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402
import numbered  # noqa: E402

LAB = os.environ.get('CAIRN_LAB') or os.path.expanduser('~/.cache/cairn-lab')
SID = os.path.join(LAB, 'sid')
WAYS = [
    '-O0', '-O1', '-O2', '-O3', '-Os', '-O2 -fno-omit-frame-pointer', '-O2 -mavx2 -mstackrealign',
    '-O2 -fstack-clash-protection -D_FORTIFY_SOURCE=2'
]


def inside(*command):
    code, out, err = common.run(['chroot', SID, *command], 300)
    if code:
        raise RuntimeError(f'{command}: {err[-1000:]}')
    return out


def rows_of(text):
    """{address of a function: [rows]}; readelf's and our dump's text are the same"""
    functions, rows = {}, None
    for line in text.splitlines():
        head = re.match(r'\s*func idx \[\d+\]: pc = (0x\w+)', line)
        row = re.match(r'\s*([0-9a-f]{16})\s+(\S.*)', line)
        if head:
            rows = functions.setdefault(int(head.group(1), 16), [])
        elif row and rows is not None:
            rows.append((int(row.group(1), 16), ' '.join(row.group(2).split())))
    return functions


def without_repeats(rows):
    return [row for i, row in enumerate(rows) if not i or row[1] != rows[i - 1][1]]


def linker_ranges(text):
    """Where .plt and the like are, of readelf -SW"""
    found = []
    for name, lo, size in re.findall(
            r'\]\s+(\.plt\S*)\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)', text):
        found.append((int(lo, 16), int(lo, 16) + int(size, 16)))
    return found


def row_at(rows, at):
    return [row for start, row in rows if start <= at][-1].split()


def gives_frame_pointer_back(path, lo, hi):
    """Whether the instruction before [lo, hi) does, and none in it writes rbp; hi: None when it is
    the function's end, where a return is"""
    text = common.run([
        'objdump', '-d', '--no-show-raw-insn', f'--start-address={lo - 1:#x}',
        f'--stop-address={hi or lo + 64:#x}', path
    ])[1]
    lines = [(int(at, 16), insn)
             for at, insn in re.findall(r'^\s*([0-9a-f]+):\s+(.*)$', text, re.M)]
    after = [insn for at, insn in lines if at >= lo]
    if hi is None:
        after = after[:next((i for i, insn in enumerate(after) if insn.startswith('ret')), 0) + 1]
    return bool(lines) and lines[0][0] == lo - 1 and re.match(
        r'leave|pop +%rbp',
        lines[0][1]) and not any(re.search(r'%[er]?bp$|^leave|^call', insn) for insn in after)


def is_mended(path, theirs, ours):
    """All differences are of the kind that is told above"""
    starts = sorted({at for at, _ in theirs} | {at for at, _ in ours})
    before = False
    for i, at in enumerate(starts):
        a, b = row_at(theirs, at), row_at(ours, at)
        differs = a[:2] != b[:2]
        if differs and (a[0] != b[0] or a[1] != '(fp+0)' or b[1] != 'u'
                        or not {a[2], b[2]} <= {'f', 'U'}):
            return False
        # The first of several in a row; the others follow from it.
        if differs and not before:
            end = next((s for s in starts[i + 1:] if row_at(theirs, s)[:2] == row_at(ours, s)[:2]),
                       None)
            if not gives_frame_pointer_back(path, at, end):
                return False
        before = differs
    return True


def compare(theirs, ours, ranges, what, tally, path=None):
    for at, rows in theirs.items():
        if any(lo <= at < hi for lo, hi in ranges):
            tally['linker'] += 1
        elif at not in ours:
            tally['left out by us'] += 1
            if tally['left out by us'] <= 5:
                print(f'    {what}: we leave out {at:#x}: {rows}')
        elif without_repeats(rows) == without_repeats(ours[at]):
            tally['equal functions'] += 1
            tally['equal rows'] += len(without_repeats(rows))
            tally['repeated'] += len(rows) - len(without_repeats(rows))
        elif path and is_mended(path, rows, ours[at]):
            tally['mended'] += 1
        else:
            tally['different'] += 1
            if tally['different'] <= 5:
                print(f'    {what}: {at:#x}: gas {rows}\n        ours {ours[at]}')
    tally['only ours'] += sum(
        at not in theirs and not any(lo <= at < hi for lo, hi in ranges) for at in ours)


def newest(folder, name, way, tallies, readers):
    """@folder is below SID"""
    local = '/' + os.path.relpath(folder, SID)
    inside(
        'sh', '-c',
        f'cd {local} && gcc -g0 -w -fPIC -shared {way} -Wa,--gsframe-3 {name}.c -o gas.so && objcopy --remove-section .sframe gas.so bare.so'
    )
    ranges = linker_ranges(inside('readelf', '-SW', f'{local}/gas.so'))
    theirs = rows_of(inside('readelf', '--sframe', f'{local}/gas.so'))
    for version in ('3', '2'):
        mine = os.path.join(folder, 'ours.so')
        code, said, err = common.run([
            common.CAIRN, 'unwind', 'encode', '--json', '--sframe', version, '--embed',
            os.path.join(folder, 'bare.so'), '-o', mine
        ])
        if code:
            raise RuntimeError(err)
        text = inside('readelf', '--sframe', f'{local}/ours.so')
        ours = rows_of(text)
        readers['readelf'] += f'SFRAME_VERSION_{version}' in text and 'Warning' not in text
        body = inside('objdump', '--sframe=.sframe', f'{local}/ours.so')
        readers['objdump'] += rows_of(body) == ours
        readers['asked'] += 1
        if version == '3':
            compare(theirs, ours, ranges, f'{name} {way}', tallies['3'], mine)
            tallies['3']['said to be mended'] += json.loads(said)['mended']
        else:
            # What version 2 has no way to say is left out by us, and is no difference.
            compare({at: rows
                     for at, rows in theirs.items()
                     if at in ours}, ours, ranges, f'{name} {way}, version 2', tallies['2'])


def version_1(folder, name, way, tally):
    path = os.path.join(folder, 'v1.so')
    code, _, err = common.run([
        'gcc', '-g0', '-w', '-fPIC', '-shared', *way.split(), '-Wa,--gsframe',
        os.path.join(folder, name + '.c'), '-o', path
    ])
    if code:
        raise RuntimeError(err)
    text = common.run([common.CAIRN, 'unwind', 'dump', '--sframe', path])[1]
    if 'SFRAME_VERSION_1' not in text:
        return False
    ours = os.path.join(folder, 'v1-ours')
    common.run([common.CAIRN, 'unwind', 'encode', '--sframe', '2', path, '-o', ours])
    ranges = linker_ranges(common.run(['readelf', '-SW', path])[1])
    mine = rows_of(common.run([common.CAIRN, 'unwind', 'dump', '--sframe', ours])[1])
    compare(
        {
            at: rows
            for at, rows in rows_of(text).items()
            if at in mine or any(lo <= at < hi for lo, hi in ranges)
        }, mine, ranges, f'{name} {way}, version 1', tally)
    return True


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    if os.geteuid() or not os.path.exists(os.path.join(
            SID, 'usr/bin/readelf')) or not shutil.which('chroot'):
        common.skip('sframe_against_gas', 'it takes root and a Debian unstable below CAIRN_LAB')
        common.finish()
    if '--gsframe-<N>' not in inside('as', '--help'):
        common.skip('sframe_against_gas', 'the assembler there has no versions of '
                                          'SFrame to choose from')
        common.finish()
    tallies = {key: collections.Counter() for key in '123'}
    readers = collections.Counter()
    has_version_1 = False
    with tempfile.TemporaryDirectory(prefix='cairn-sframe-', dir=os.path.join(SID,
                                                                              'tmp')) as folder:
        for seed in range(1, seeds + 1):
            with open(os.path.join(folder, f'p{seed}.c'), 'w', encoding='utf-8') as file:
                file.write(numbered.Program(seed).source())
            for way in WAYS:
                newest(folder, f'p{seed}', way, tallies, readers)
                has_version_1 |= version_1(folder, f'p{seed}', way, tallies['1'])
    for version, tally in tallies.items():
        print(f'    version {version}: ' + ', '.join(f'{what} {n}'
                                                     for what, n in sorted(tally.items())))
    common.claim(
        'sframe_against_gas: version 3 has the rows of gas, and leaves out '
        'nothing that gas has', not tallies['3']['different'] and not tallies['3']['left out by us']
        and tallies['3']['equal rows'] > 100)
    common.claim('sframe_against_gas: where its instructions give the frame pointer back, and '
                 'nowhere else, a row says less than that of gas',
                 tallies['3']['mended'] == tallies['3']['said to be mended'] > 0)
    common.claim('sframe_against_gas: version 2 has the same rows', not tallies['2']['different']
                 and tallies['2']['equal rows'] > 100)
    common.claim('sframe_against_gas: readelf and objdump read ours',
                 readers['readelf'] == readers['objdump'] == readers['asked'])
    if has_version_1:
        common.claim('sframe_against_gas: version 1 of an older gas is read as what .eh_frame says',
                     not tallies['1']['different'] and tallies['1']['equal rows'] > 100)
    else:
        common.skip('sframe_against_gas: version 1', "this system's assembler "
                                                     "writes another version")
    common.finish()


main()
