# SPDX-License-Identifier: BSD-2-Clause
"""Calls of a function by the line that calls, beside the events of the places that have this line.

A row for each line: the calls there in the counting build, the events there, and how many copies
the optimised build has of this call. The body's events have no line; they are the calls of lines
that were not inlined, and those of pointers.
"""
import collections

import common


def source_lines(program, addresses):
    """{address: (function, line)}; the function tells the file, which addr2line 2.40 gets wrong for
    DWARF 5."""
    addresses = sorted(addresses)
    code, out, err = common.run(['addr2line', '-fe', program, *(hex(a) for a in addresses)], 300)
    if code != 0:
        raise RuntimeError(f'addr2line {program}: {err[-300:]}')
    told = out.splitlines()
    return {
        a: (told[2 * i], told[2 * i + 1].split(' ')[0].rpartition(':')[2])
        for i, a in enumerate(addresses)
    }


def calls_by_line(program, counted):
    """{(line, caller): calls} of rows (address the call returns to, calls)."""
    where = source_lines(program, {ret - 1 for ret, _ in counted})
    found = collections.Counter()
    for ret, n in counted:
        caller, line = where[ret - 1]
        found[(line, caller)] += n
    return found


def key_of(row):
    if not row['chain']:
        return ('body', row['symbol'] or '')
    caller = row['chain'][1]['function'] if len(row['chain']) > 1 else row['container']
    return (str(row['call']['line']), caller)


def table(counted, rows, events):
    """[(line, caller, calls, [row of a place, events])] of calls_by_line(), rows of cairn sites and
    {address: events}."""
    found = collections.defaultdict(list)
    places = [row for row in rows if row['kind'] != 'part']
    # Copies that begin at one address have an event each.
    shared = collections.Counter(row['addr'] for row in places)
    for row in places:
        found[key_of(row)].append((row, events.get(int(row['addr'], 16), 0) // shared[row['addr']]))
    keys = sorted(set(found) | set(counted))
    return [(line, caller, counted.get((line, caller), 0), found[(line, caller)])
            for line, caller in keys]


def classify(name, rows, copies_of):
    """ The class of a function: where most of what is missing or too much comes from, by the
    numbers alone (why.py proves it).

    copies_of(caller) tells how many copies, the body among them, a function has: a call that is not
    in all of them was computed or dropped in the others. The calls of lines without a copy are the
    body's, as far as it was called. "equal" when each line has as many events.
    """
    found = collections.Counter()
    for line, caller, calls, places in rows:
        n = sum(n for _, n in places)
        copies = len({row['die'] for row, _ in places})
        if line == 'body':
            found['no-copy'] -= n
        elif not copies:
            found['recursion' if caller == name else 'no-copy'] += calls
        elif n > calls:
            found['extra'] += n - calls
        elif n < calls:
            found['some-copies' if copies < copies_of(caller) else 'passed-by'] += calls - n
    if found['no-copy'] < 0 and found['recursion']:
        found['recursion'] += found['no-copy']
    why, n = found.most_common(1)[0] if found else ('equal', 1)
    return why if n > 0 else 'equal'


def show(title, rows):
    n_calls, n_events = sum(row[2] for row in rows), sum(n for row in rows for _, n in row[3])
    print(f'{title}: {n_calls} calls, {n_events} events')
    for line, caller, calls, places in rows:
        n = sum(n for _, n in places)
        if not calls and not n:
            continue
        print(
            f'  {" " if calls == n else "*"} {line} in {caller}: {calls} calls, {n} events, {len({row["die"] for row, _ in places})} copies'
        )
        for row, n in places if calls != sum(n for _, n in places) else ():
            print(
                f'        {row["addr"]} {row["symbol"]}+{row["symbol_off"]:#x} {row["rule"]}: {n} {" ".join(row["count_caveats"])}'
            )
