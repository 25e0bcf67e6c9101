# SPDX-License-Identifier: BSD-2-Clause
"""Why a function of a generated program has fewer or more events than calls, where the program's text does not show it.

Told by what `cairn sites` says beforehand of one of its places, else by the class of the lines that call it (call_counts/lines.py): their
calls are counted in a build without optimisation, and compared with the events of the copies that have the line.
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

HOOKS = os.path.join(os.path.dirname(lines.__file__), 'hooks.c')
# Marks that tell of more events than calls.
MORE = {'again', 'shared-path', 'condition', 'no-entry'}


class Counts:
    def __init__(self, folder, program, events):
        self.folder, self.program = folder, os.path.join(folder, program)
        self.events = collections.Counter(int(str(e['place']), 0) for e in events if e['place'] is not None)

    @functools.cached_property
    def counted(self):
        counting = os.path.join(self.folder, 'p.count')
        if not os.path.exists(counting):
            build.compile_program(self.folder, 'p.count', 'gcc', ['-O0', '-g', '-finstrument-functions', HOOKS])
        rows = call_counts.counting_run(counting, os.path.join(self.folder, 'count.report'))
        return {name: lines.calls_by_line(counting, found) for (name, _), found in rows.items()}

    @functools.cache
    def places(self, name):
        return [row for row in common.cairn_sites(self.program, name) if row['kind'] != 'part']

    def copies_of(self, name):
        return len({row['die'] for row in self.places(name)})

    def marks(self, name):
        return {mark for row in self.places(name) for mark in row['count_doubts']}

    @functools.cache
    def why_missing(self, name):
        marks = self.marks(name)
        if marks:
            return 'announced: ' + ' '.join(sorted(marks))
        return lines.classify(name, lines.table(self.counted.get(name, {}), self.places(name), self.events), self.copies_of)

    def why_doubled(self, name):
        marks = self.marks(name) & MORE
        return 'announced: ' + ' '.join(sorted(marks)) if marks else 'not announced'


def explain(result, counts):
    """Puts the calls whose reason the text did not show under what the places and lines tell."""
    for why in ('other', 'has code, never seen'):
        for call in result.missing.pop(why, []):
            result.missing.setdefault(counts.why_missing(call[0]), []).append(call)
    for why in ('one place, passed again', 'several places', 'loosely matched'):
        for call in result.doubled.pop(why, []):
            result.doubled.setdefault(f'{why}, {counts.why_doubled(call[0])}', []).append(call)
