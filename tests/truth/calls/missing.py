# SPDX-License-Identifier: BSD-2-Clause
"""Why a function of a generated program has fewer or more events than calls, where the program's
text does not show it.

Told by what `cairn sites` says beforehand of one of its sites, else by the class of the lines that
call it (call_counts/lines.py): their calls are counted in a build without optimisation, and
compared with the events of the copies that have the line.
"""
import collections
import functools
import os
import sys

import build
import call_counts
import common

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(call_counts.__file__)), 'call_counts'))
import lines  # noqa: E402
import why    # noqa: E402

HOOKS = os.path.join(os.path.dirname(lines.__file__), 'hooks.c')
# Marks that tell of more events than calls.
MORE = {'looped', 'shared-pc', 'before-test', 'no-entry', 'folded'}


class Counts:
    def __init__(self, folder, program, events):
        self.folder, self.program = folder, os.path.join(folder, program)
        self.events = collections.Counter(
            int(str(e['site']), 0) for e in events if e['site'] is not None)

    @functools.cached_property
    def counted(self):
        counting = os.path.join(self.folder, 'p.count')
        if not os.path.exists(counting):
            build.compile_program(self.folder, 'p.count', 'gcc',
                                  ['-O0', '-g', '-finstrument-functions', HOOKS])
        rows = call_counts.counting_run(counting, os.path.join(self.folder, 'count.report'))
        return {name: lines.calls_by_line(counting, found) for (name, _), found in rows.items()}

    @functools.cache
    def sites(self, name):
        return [row for row in common.cairn_sites(self.program, name) if row['kind'] != 'part']

    def copies_of(self, name):
        return len({row['die'] for row in self.sites(name)})

    def marks(self, name):
        return {mark for row in self.sites(name) for mark in row['count_caveats']}

    @functools.cache
    def why_missing(self, name):
        marks = self.marks(name)
        if marks:
            return 'announced: ' + ' '.join(sorted(marks))
        return lines.classify(
            name, lines.table(self.counted.get(name, {}), self.sites(name), self.events),
            self.copies_of)

    @functools.cached_property
    def debug(self):
        return why.Debug(self.program)

    def entries(self, name):
        """{address: whether the compiler names it an entry of the function: in a DIE, as a body, or
        by the row of a marker}"""
        named = {c.entry for c in self.debug.by_name[name] if c.entry is not None}
        lines_of = {c.decl for c in self.debug.by_name[name]}
        sites = {int(row['addr'], 16) for row in self.sites(name)}
        return {
            at: at in named or any(r[0] in lines_of and r[2] for r in self.debug.rows.get(at, ()))
            for at in sites
        }

    def why_doubled(self, name, sites):
        """The marks; else whether the sites are entries by the compiler's own word, as libdw reads
        it."""
        marks = self.marks(name) & MORE
        if marks:
            return 'announced: ' + ' '.join(sorted(marks))
        entries = self.entries(name)
        named = [entries.get(int(str(site), 0)) for site in sites]
        if None in named:
            return 'not explained'
        return 'the compiler names each of these entries' if all(
            named) else 'the compiler left no entry at one of these sites'


def explain(result, counts):
    """Puts the calls whose reason the text did not show under what the sites and lines tell."""
    for reason in ('other', 'has code, never seen'):
        for call in result.missing.pop(reason, []):
            result.missing.setdefault(counts.why_missing(call[0]), []).append(call)
    for reason in ('one site, passed again', 'several sites', 'loosely matched'):
        for call in result.doubled.pop(reason, []):
            result.doubled.setdefault(f'{reason}, {counts.why_doubled(call[0], call[2])}',
                                      []).append(call)
