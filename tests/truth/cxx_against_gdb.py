#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares Cairn's arguments of C++ functions with gdb's: classes by value and by invisible
reference, members, references.

As against_gdb.py, for the debug build of the C++ library, and for programs that use fmt and LLVM's
classes, at -O0 and -O2, by g++ and clang++. At -O0 a parameter is described for the time after the
prologue has stored it, and Cairn says where it is before: gdb is asked at the second line of the
function, Cairn's location is evaluated at the first instruction, and both have to be one value.
"""
import collections
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, 'calls')]
import against_gdb as base  # noqa: E402
import common               # noqa: E402
import tracers              # noqa: E402

LIBRARY = '/usr/lib/x86_64-linux-gnu/debug/libstdc++.so.6'
SITES_MAX = 4000


class Subject(base.Subject):
    def __init__(self, name, program, args, module, optimised):
        super().__init__(name, program, args, module or program, module)
        self.optimised = optimised
        # Most of these libraries' functions are inlined then, and copies that begin at one address
        # are left out.
        self.functions_min = 15 if optimised else 100


def compiled(folder, source, compiler, flags, libraries=()):
    """Path of the program; RuntimeError with what the compiler said."""
    output = os.path.join(folder, re.sub(r'\W+', '-', f'{source}-{compiler}{"".join(flags)}'))
    common.compile_c([os.path.join(HERE, 'cxx', source + '.cc'), *libraries], output,
                     ['-g', '-w', '-std=c++17', *flags], compiler, 600)
    return output


def llvm_flags():
    _, flags, _ = common.run(['llvm-config', '--includedir'])
    _, libraries, _ = common.run(['llvm-config', '--ldflags', '--libs'])
    return [f'-I{flags.strip()}'], libraries.split()


def subjects(folder):
    """Yields a Subject, or (name, reason) for one that is not available."""
    if os.path.exists(LIBRARY):
        yield Subject('libstdc++ at -O0', compiled(folder, 'library', 'g++', ['-O1']), [folder],
                      os.path.realpath(LIBRARY), False)
    else:
        yield 'libstdc++', 'libstdc++6-12-dbg is not installed'
    for compiler in ('g++', 'clang++'):
        for level in ('-O0', '-O2'):
            for source, present, flags, libraries in (('format',
                                                       os.path.exists('/usr/include/fmt/format.h'),
                                                       [], []),
                                                      ('llvm', not common.have('llvm-config'),
                                                       *llvm_flags())):
                name = f'{source} by {compiler} {level}'
                if not present:
                    yield name, 'its headers are not installed'
                    continue
                yield Subject(name, compiled(folder, source, compiler, [level, *flags], libraries),
                              [], None, level != '-O0')


def sites_of(subject):
    """Rows of `cairn sites` with arguments, at most SITES_MAX, evenly taken; each address once."""
    code, out, err = common.run(
        [common.CAIRN, 'sites', '--no-sidecar', subject.binary, '*', '--json'], 300)
    if code != 0:
        raise RuntimeError(f'cairn sites {subject.binary}: exit code {code}: {err[-500:]}')
    rows = [r for r in common.json_lines(out) if r['kind'] != 'part' and r['args']]
    at = collections.Counter(r['addr'] for r in rows)
    rows = [r for r in rows if at[r['addr']] == 1]
    rows = rows[::max(1, -(-len(rows) // SITES_MAX))]
    return rows, [{
        'id': i, 'at': int(r['addr'], 16), 'function': r['function'], 'after':
        r['kind'] == 'out-of-line' and not subject.optimised, 'locs':
        {a['name']: a['loc']
         for a in r['args']
         if a['loc'] is not None}
    }
                  for i, r in enumerate(rows)]


def compare(subject, folder):
    rows, sites = sites_of(subject)
    label = 'cxx-' + re.sub(r'\W+', '-', subject.name)
    job = {
        'program': subject.program, 'args': subject.args, 'output': os.path.join(
            folder, label + '.out'), 'sites': sites, 'max_hits': base.HITS
    }
    _, symbols, _ = common.run(['nm', subject.dwarf])
    job['symbols'] = {
        f[-1].split('@')[0]: int(f[0], 16)
        for f in (line.split() for line in symbols.splitlines())
        if len(f) == 3
    }
    if subject.module:
        job['module'] = subject.module
        job['library_path'] = os.path.dirname(subject.module)
    else:
        job['entry'] = tracers.entry_address(subject.program)
    comparison = base.Comparison(subject, rows)
    for record in tracers.run_gdb(job, folder, label, 1200):
        comparison.add(record)
    comparison.report()


def main():
    missing = common.have('gdb', 'g++', 'clang++', 'nm', 'llvm-dwarfdump')
    if missing or not os.access(common.CAIRN, os.X_OK):
        common.skip('cxx', 'not installed: ' + ' '.join(missing or ['cairn is not built']))
        return common.finish()
    folder = common.lab('gdb')
    for subject in subjects(folder):
        if len(sys.argv) > 1 and sys.argv[1] not in (subject if isinstance(subject, tuple) else
                                                     subject.name):
            continue
        if isinstance(subject, tuple):
            common.skip('cxx ' + subject[0], subject[1])
            continue
        try:
            compare(subject, folder)
        except tracers.Broken as error:
            common.skip('cxx ' + subject.name, str(error))
        except (RuntimeError, OSError) as error:
            print(error)
            common.not_ok('cxx ' + subject.name)
    return common.finish()


if __name__ == '__main__':
    main()
