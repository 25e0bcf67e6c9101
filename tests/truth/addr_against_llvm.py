#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`cairn addr` and the newest llvm-symbolizer on random addresses of code: frames, names, files,
lines and columns.

    addr_against_llvm.py [-n ADDRESSES] [-v] [FILE...]     default: 100,000 of the lab's vmlinux, libstdc++ and libjvm

An answer differs in a class; each class is either an explanation in EXPLAINED, or fails. -v shows
examples of each.
"""
import collections
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

LAB = os.environ.get('CAIRN_LAB') or os.path.expanduser('~/.cache/cairn-lab')
SID = os.path.join(LAB, 'sid')

EXPLAINED = {
    'symbol without a size':
    'a label within a function of known size, or a local one within a function: llvm names '
    'it, cairn the function', 'another name of the symbol':
    'several symbols begin there (aliases, or the local one of an assembler): which one '
    'names it is a choice', 'symbol that starts later':
    'symbols nest: the innermost is taken; llvm takes the one that starts last, also where that has ended',
    'file of a symbol':
    'code without lines: llvm takes the file from a symbol of type FILE, cairn says that '
    'the file is not known', 'padding after a function':
    'the line table goes on there; llvm looks at the ranges of units first, which end',
}


def llvm(path, debug, addresses):
    """One list of (function, file, line, column) per address."""
    loader = os.path.join(SID, 'lib64', 'ld-linux-x86-64.so.2')
    libs = ':'.join(
        os.path.join(SID, d)
        for d in ('usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu', 'usr/lib/llvm-21/lib'))
    program = os.path.realpath(os.path.join(SID, 'usr/bin/llvm-symbolizer'))
    if not os.path.exists(program):
        program = os.path.join(SID, 'usr/lib/llvm-21/bin/llvm-symbolizer')
    cmd = [
        loader, '--library-path', libs, program, '--no-demangle', '--inlines',
        '--output-style=JSON', '--obj=' + (debug or path)
    ]
    done = subprocess.run(cmd, input=''.join(f'{a:#x}\n' for a in addresses), capture_output=True,
                          text=True, check=True)
    answers = []
    for line in done.stdout.splitlines():
        answers.append([(s['FunctionName'].split('@')[0], s['FileName'], s['Line'], s['Column'])
                        for s in json.loads(line).get('Symbol', [])])
    return answers


def cairn(path, debug, addresses):
    cmd = [common.CAIRN, 'addr', path, '--json', '--no-cache'
           ] + (['--debug-file', debug] if debug else [])
    done = subprocess.run(cmd, input=''.join(f'{a:#x}\n' for a in addresses), capture_output=True,
                          text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return [[(f['function'] or '', f['file'] or '', f['line'], f['column'])
             for f in json.loads(line)['frames']]
            for line in done.stdout.splitlines()]


def code_ranges(path):
    """[lo, hi) of each section with code."""
    out = subprocess.run(['readelf', '-SW', path], capture_output=True, text=True,
                         check=True).stdout
    for line in out.splitlines():
        words = line.split(']', 1)[-1].split()
        if len(words) > 6 and words[1] == 'PROGBITS' and 'X' in words[6] and 'A' in words[6]:
            yield int(words[2], 16), int(words[2], 16) + int(words[4], 16)


class Symbols:
    """Function symbols, to tell why two names differ."""

    def __init__(self, path):
        out = subprocess.run(['readelf', '-sW', path], capture_output=True, text=True,
                             check=True).stdout
        self.of = collections.defaultdict(list)
        for line in out.splitlines():
            w = line.split()
            if len(w) > 7 and w[0].endswith(':') and w[6] not in ('UND', 'ABS') and w[3] in (
                    'FUNC', 'NOTYPE', 'IFUNC', 'OBJECT'):
                self.of[w[7].split('@')[0]].append((int(w[1], 16), int(w[2], 0)))


def same_path(a, b):
    """llvm shows a relative compilation directory as it is; both are compared without "./"."""
    return os.path.normpath(a) == os.path.normpath(b)


def unknown(frames):
    return not frames or frames == [('', '', 0, 0)]


def class_of(at, ours, theirs, symbols):
    """None when both say the same."""
    if unknown(ours) and unknown(theirs):
        return None
    if len(ours) == len(theirs) and ours[:-1] == theirs[:-1] and ours[-1][1:] == theirs[-1][1:]:
        if ours[-1][0] == theirs[-1][0]:
            return None
        a, b = symbols.of.get(ours[-1][0], []), symbols.of.get(theirs[-1][0], [])
        if any(size == 0 for _, size in b) and not any(s <= at < s + n for s, n in b):
            return 'symbol without a size'
        if {s for s, _ in a} & {s for s, _ in b}:
            return 'another name of the symbol'
        if b and not any(s <= at < s + n for s, n in b):
            return 'symbol that starts later'
        return 'name of the outermost'
    if len(ours) == len(theirs) == 1 and not ours[0][2] and not theirs[0][2] and not ours[0][1]:
        if ours[0][0] == theirs[0][0]:
            return 'file of a symbol'
    if unknown(ours) and len(theirs) == 1 and not theirs[0][2]:
        sizes = symbols.of.get(theirs[0][0], [])
        if not any(s <= at < s + n for s, n in sizes):
            return 'symbol without a size'
        return 'unknown to us'
    if unknown(theirs):
        return 'padding after a function' if len(
            ours) == 1 and not ours[0][0] else 'unknown to llvm'
    if len(ours) != len(theirs):
        return 'number of frames'
    if [f[0] for f in ours[:-1]] != [f[0] for f in theirs[:-1]]:
        return 'name of an inlined function'
    if [f[2:] for f in ours] == [f[2:] for f in theirs]:
        if all(same_path(o[1], t[1]) for o, t in zip(ours, theirs)):
            return None
        return 'file'
    if any(o[2:] != t[2:] for o, t in zip(ours[1:], theirs[1:])):
        return 'site of a call'
    if not ours[0][2] or not theirs[0][2]:
        return 'line 0'
    return 'line'


def compare(name, path, debug, n, verbose):
    rng = random.Random(1)
    ranges = list(code_ranges(path))
    weights = [hi - lo for lo, hi in ranges]
    addresses = [rng.randrange(lo, hi) for lo, hi in rng.choices(ranges, weights, k=n)]
    symbols = Symbols(debug or path)
    theirs, ours = llvm(path, debug, addresses), cairn(path, debug, addresses)
    common.claim(f'{name}: an answer to each of {n} addresses', len(ours) == len(theirs) == n)
    classes, examples = collections.Counter(), collections.defaultdict(list)
    for at, o, t in zip(addresses, ours, theirs):
        which = class_of(at, o, t, symbols)
        classes[which] += 1
        if which and len(examples[which]) < 4:
            examples[which].append((at, o, t))
    print(
        f'# {name}: {classes[None]} of {n} equal; {sum(len(t) for t in theirs) / n:.2f} frames on average'
    )
    for which, count in classes.most_common():
        if which is None:
            continue
        print(f'#   {count} {which}: {EXPLAINED.get(which, "not explained")}')
        for at, o, t in examples[which] if verbose or which not in EXPLAINED else []:
            print(f'#     {at:#x}\n#       cairn {o}\n#       llvm  {t}')
    common.claim(f'{name}: every difference is explained',
                 all(c is None or c in EXPLAINED for c in classes))


def main():
    args = sys.argv[1:]
    n, verbose = 100000, '-v' in args
    args = [a for a in args if a != '-v']
    if args[:1] == ['-n']:
        n, args = int(args[1]), args[2:]
    if not os.path.exists(os.path.join(SID, 'usr/bin/llvm-symbolizer')):
        common.skip('addr against llvm-symbolizer',
                    f'no {SID}/usr/bin/llvm-symbolizer: run the lab\'s peers')
        common.finish()
    for name in args or ('vmlinux', 'libstdc++.so.6', 'libjvm.so'):
        path = common.lab_input(name) or name
        if not os.path.exists(path):
            common.skip(f'{name} against llvm-symbolizer', 'not in the lab')
            continue
        compare(name, path,
                common.lab_input(name.replace('.so', '.debug')) if name == 'libjvm.so' else None, n,
                verbose)
    common.finish()


main()
