#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""AArch64: stacks of cores that QEMU writes, against gdb and against the calls that were made; rows
of files against readelf.

A program is compiled with and without signed return addresses, crashes under qemu-aarch64, and its
core is walked. gdb looks at the same program through QEMU's gdb stub, at the same crash: QEMU gives
every run the same addresses.
"""
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

SYSROOT = '/usr/aarch64-linux-gnu'
ADDRESS = (1 << 48) - 1
GCC = 'aarch64-linux-gnu-gcc'
CRASHES = ['plain', 'sort', 'alloca', 'realigned', 'leaf', 'noreturn', 'pointer', 'library']
FLAGS = {
    'as it is': ['-O2'],
    'signed': ['-O2', '-mbranch-protection=standard'],
    'signed, leaves too': ['-O2', '-mbranch-protection=pac-ret+leaf+b-key'],
    'not optimised': ['-O0'],
    'no frame pointers': ['-O2', '-fomit-frame-pointer', '-mbranch-protection=pac-ret'],
    'frames saved at the top': ['-O3', '-fstack-protector-all'],
    'not position-independent': ['-O2', '-no-pie', '-fno-pic'],
}


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def qemu(program, how, folder, *options):
    command = ['qemu-aarch64', *options, '-L', SYSROOT, program, how]
    return subprocess.Popen(['prlimit', '--core=unlimited', *command], cwd=folder,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def core_of(program, how, folder):
    where = tempfile.mkdtemp(dir=folder)
    process = qemu(program, how, where)
    process.wait(120)
    cores = glob.glob(os.path.join(where, 'qemu_*.core'))
    # The kernel's of QEMU itself.
    for path in glob.glob(os.path.join(where, 'core*')):
        os.unlink(path)
    return cores[0] if cores else None


def stack_of_gdb(program, how, folder):
    """[pc, ...] of the crashed thread"""
    port = free_port()
    process = qemu(program, how, folder, '-g', str(port))
    script = [
        'set confirm off', 'set backtrace past-main on', f'set sysroot {SYSROOT}',
        f'file {program}', f'target remote 127.0.0.1:{port}', 'continue',
        f'source {os.path.join(HERE, "stacks", "frames_of_gdb.py")}'
    ]
    words = [word for line in script for word in ('-ex', line)]
    # It asks for questions: "here" is the inferior that it has.
    gdb = subprocess.run(['gdb-multiarch', '-nx', '-q', '-batch', *words], input='here\n',
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=180,
                         check=False)
    process.kill()
    process.wait()
    for line in gdb.stdout.splitlines():
        if line.startswith('frames '):
            found = json.loads(line[7:])
            return next((pcs for pcs in found.values() if isinstance(pcs, list)), None)
    return None


def compare(program, how, name, folder):
    core = core_of(program, how, folder)
    if core is None:
        common.skip(f'aarch64 {name} {how}', 'qemu-aarch64 wrote no core')
        return
    code, out, err = common.run(
        [common.CAIRN, 'stack', '--symbols', '--no-cache', '--json', '--sysroot', SYSROOT, core])
    os.unlink(core)
    threads = common.json_lines(out)
    if not threads:
        common.not_ok(f'aarch64 {name} {how}: {code} {err}')
        return
    thread = threads[0]
    ours = [int(f['pc'], 16) for f in thread['frames']]
    names = [f['function'] for frame in thread['frames'] for f in frame['functions']]
    expected = (['touch'] if how != 'pointer' else []) + ['crash'] + ['down'] * 9 + ['main']
    calls = [n for n in names if n in expected]
    common.claim(
        f'aarch64 {name} {how}: the calls that were made, from {names[0] if names else "?"} to the outermost frame',
        calls == expected and thread['end'] == ('assumed' if how == 'pointer' else 'outermost')
        or print(f'    {names} {thread["why"]}'))
    theirs = stack_of_gdb(program, how, folder)
    if theirs is None:
        common.skip(f'aarch64 {name} {how}: gdb', 'no answer')
        return
    same = len(os.path.commonprefix([ours, theirs]))
    if ours[same:] and theirs[same +
                              1:] == [] and theirs[same:] and theirs[same] & ADDRESS == ours[same]:
        # QEMU's stub of before version 8.2 does not tell gdb which bits a signature has.
        common.claim(
            f'aarch64 {name} {how}: {same} frames as gdb has them, which then does not remove the signature',
            same > 1)
        return
    common.claim(
        f'aarch64 {name} {how}: {len(ours)} frames as gdb has them', ours == theirs
        or print(f'    {[hex(a) for a in ours]} {[hex(a) for a in theirs]}'))


# ---- rows ----

def rows_of_readelf(path):
    """[(from, to, CFA, {register: cell})], of each FDE's rows"""
    _, text, _ = common.run(['readelf', '-W', '--debug-dump=frames-interp', path], 300)
    rows, columns, end, last = [], [], 0, None
    for line in text.splitlines() + ['00 FDE pc=0..0']:
        fde = re.search(r' FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)', line)
        row = re.match(r'([0-9a-f]{16}) (\S+) +(.*)$', line)
        if (fde or ' CIE' in line or row) and last:
            rows.append(
                (last[0], int(row.group(1), 16) if row and not fde and ' CIE' not in line else end,
                 *last[1:]))
            last = None
        if fde:
            end = int(fde.group(2), 16)
        elif ' CIE' in line or 'ZERO terminator' in line:
            end = 0
        elif line.split()[:2] == ['LOC', 'CFA']:
            columns = line.split()[2:]
        elif row and end and columns is not None:
            cells = re.sub(r'\([^)]*\)', '', row.group(3)).split()
            last = (int(row.group(1), 16), row.group(2), dict(zip(columns, cells)))
    return [r for r in rows if r[0] < r[1]]


def spell(row, register):
    """As readelf does: c-16; u: of no concern."""
    site = row['saved'].get(register)
    found = re.fullmatch(r'cfa([+-]\d+)', site or '')
    return f'c{found.group(1)}' if found else site or 'u'


def compare_rows(path):
    _, out, err = common.run([common.CAIRN, 'unwind', 'dump', path, '--json'], 300)
    ours = sorted(((int(r['lo'], 16), int(r['hi'], 16), r) for r in common.json_lines(out)),
                  key=lambda r: r[0])
    if not ours:
        common.not_ok(f'aarch64 rows of {path}: {err}')
        return
    at, same, undescribed, different = 0, 0, 0, []
    for lo, hi, cfa, cells in sorted(rows_of_readelf(path), key=lambda r: r[0]):
        while at < len(ours) and ours[at][1] <= lo:
            at += 1
        row = ours[at][2] if at < len(ours) and ours[at][0] <= lo < ours[at][1] else None
        kept = {
            register: cell
            for register, cell in cells.items()
            if re.fullmatch(r'x(19|2\d|30)|ra', register)
        }
        is_same = row is not None and (
            row['cfa'] in ('outermost', 'undescribed') or
            (row['cfa'] == cfa and ours[at][1] >= hi and all(
                spell(row, 'x30' if r == 'ra' else r) == c or c in ('u', 's')
                for r, c in kept.items())))
        same += is_same
        # glibc's rawmemchr() says that the return address is in x15, before it is.
        undescribed += row is None
        if row and not is_same:
            different.append((hex(lo), cfa, kept, row))
    for d in different[:5]:
        print(f'    {d}')
    common.claim(
        f'aarch64 rows of {path}: {same} as readelf has them, {len(different)} not, {undescribed} not described',
        same > 100 and not different and undescribed * 200 < same)


def main():
    missing = common.have(GCC, 'qemu-aarch64', 'gdb-multiarch')
    if GCC in missing:
        common.skip('aarch64', f'{GCC} is not installed')
        common.finish()
    for path in ('libc.so.6', 'ld-linux-aarch64.so.1', 'libstdc++.so.6', 'libm.so.6'):
        if os.path.exists(os.path.join(SYSROOT, 'lib', path)):
            compare_rows(os.path.join(SYSROOT, 'lib', path))
    if missing:
        common.skip('aarch64 stacks', f'{", ".join(missing)} not installed')
        common.finish()
    with tempfile.TemporaryDirectory(prefix='cairn-aarch64-') as folder:
        for name, flags in FLAGS.items():
            program = common.compile_c([os.path.join(HERE, 'stacks', 'aarch64.c')],
                                       os.path.join(folder, re.sub(r'\W', '-', name)),
                                       ['-g', '-w', *flags], compiler=GCC)
            for how in CRASHES:
                compare(program, how, name, folder)
    common.finish()


main()
