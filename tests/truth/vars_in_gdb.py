# SPDX-License-Identifier: BSD-2-Clause
"""Runs inside gdb: stops at lines and compares all variables in scope with Cairn's locations.

    gdb -batch -x vars_in_gdb.py      with VARS_JOB=FILE, a JSON object:
        {"program", "args", "entry", "output": as for gdb_values.py, "symbols": {NAME: [address]},
         "hits": how many stops of each place are looked at, "values": after so many it
                 ends, or after "seconds",
         "places": [{"id": number, "at": link-time address, "function": NAME, "depth": how many
                     copies are around the place, "vars": {NAME: location as Cairn prints it, or
                     its reason as [REASON]}}, ...]}

"output" gets what differs, and how often both are equal (class Told): all of it of one stop each,
the same registers and the same memory. "integers" there has the values of each place's integers by
name, in the order of the stops, for a run that Cairn traces."""
import collections
import json
import os
import re
import signal
import sys
import threading

import gdb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gdb_values  # noqa: E402
import loc_text  # noqa: E402

# Larger ones are compared as bytes where both have them in memory, and left out where not.
SIZE_MAX = 1 << 16
SHOWN = 60
ERRORS = (gdb.error, gdb.MemoryError, gdb_values.Unavailable, RuntimeError, OverflowError,
          ValueError)
INTEGERS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_ENUM)
REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)


class Told:
    """What is written in the end."""

    def __init__(self):
        self.equal = self.stops = self.functions_unknown = self.several = 0
        self.only_gdb, self.only_cairn = collections.Counter(), collections.Counter()
        self.neither, self.not_listed = collections.Counter(), collections.Counter()
        self.different, self.failed, self.unreadable = [], [], 0
        self.examples, self.lines, self.kinds = {}, set(), collections.Counter()
        self.integers = collections.defaultdict(list)

    def as_json(self):
        return {
            name: sorted(value) if isinstance(value, set) else value
            for name, value in vars(self).items()
        }


def functions_at(pc):
    """The function blocks that cover an address, innermost first."""
    block, found = gdb.block_for_pc(pc), []
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None:
            found.append(block)
        block = block.superblock
    return found


def last_name(name):
    return (re.findall(r'\w+', re.sub(r'<.*|\(.*', '', name)) or [name])[-1]


def function_of(pc, place):
    """The block of the function that the place is of: that with as many copies around it."""
    blocks = functions_at(pc)
    at = len(blocks) - 1 - place['depth']
    if at < 0 or last_name(place['function']) != last_name(str(blocks[at].function)):
        return None
    return blocks[at]


def is_variable(symbol):
    """Not an enumerator."""
    return symbol.is_argument or symbol.is_variable or (
        symbol.is_constant and symbol.type.strip_typedefs().code != gdb.TYPE_CODE_ENUM)


def locals_of(pc, function):
    """From the innermost block outwards to the function, without functions inlined in it."""
    found, block = {}, gdb.block_for_pc(pc)
    while True:
        for symbol in block:
            if is_variable(symbol):
                found.setdefault(symbol.name, symbol)
        if block.function is not None:
            if block.start == function.start and str(block.function) == str(function.function):
                return found
            found = {}
        block = block.superblock


def outer_symbol(name, function, cache):
    """A variable of the unit or of the program, as the function sees it."""
    key = function.start, name
    if key not in cache:
        cache[key] = gdb.lookup_symbol(name, function)[0]
    return cache[key]


def gdb_value(symbol, frame):
    """As bytes if it is in memory, else as JSON."""
    value = symbol.value(frame) if symbol.needs_frame else symbol.value()
    if value.type.strip_typedefs().code not in REFERENCES and not value.is_optimized_out:
        address = value.address
        if address is not None:
            size = symbol.type.strip_typedefs().sizeof
            return bytes(gdb.selected_inferior().read_memory(int(address), size))
    return gdb_values.to_json(value)


def has_value(symbol, frame):
    try:
        return gdb_value(symbol, frame) is not None
    except ERRORS:
        return False


class Machine(gdb_values.Machine):
    """Of several symbols of one name, the text does not tell which is meant: one of them."""
    which = 0

    def symbol(self, name):
        addresses = self.state['symbols'].get(name, [None])
        at = name if isinstance(name, int) else addresses[min(self.which, len(addresses) - 1)]
        if at is None:
            raise loc_text.Unknown(f'no symbol {name}')
        return at + self.state['bias']


def cairn_value(text, symbol, machine, as_bytes):
    size = symbol.type.strip_typedefs().sizeof
    data = loc_text.evaluate(text, size, machine)
    return data if as_bytes else gdb_values.to_json(gdb.Value(data, symbol.type))


def is_same(a, b):
    return json.dumps(a, default=list) == json.dumps(b, default=list)


class Place(gdb.Breakpoint):

    def __init__(self, places, at, state):
        super().__init__(f'*{at:#x}', type=gdb.BP_BREAKPOINT, internal=True)
        self.silent, self.places, self.at, self.state = True, places, at, state
        self.left = state['hits']

    def stop(self):
        self.left -= 1
        told, frame = self.state['told'], gdb.newest_frame()
        for place in self.places:
            function = function_of(self.at, place)
            if function is None:
                told.functions_unknown += 1
                continue
            told.stops += 1
            told.lines.add(place['id'])
            self.compare(place, function, frame)
        if self.left <= 0:
            self.enabled = False
        return told.equal >= self.state['values']

    def compare(self, place, function, frame):
        machine = Machine(frame, self.state)
        inner = locals_of(self.at, function)
        for name, symbol in inner.items():
            if name not in place['vars'] and has_value(symbol, frame):
                self.state['told'].not_listed[f'{place["function"]}: {name}'] += 1
        for name, text in place['vars'].items():
            symbol = inner.get(name) or outer_symbol(name, function, self.state['globals'])
            self.one(place, name, text, symbol, (frame, machine))

    def one(self, place, name, text, symbol, at):
        told = self.state['told']
        theirs, why = None, 'gdb does not know the name'
        try:
            if symbol and symbol.type.strip_typedefs().sizeof > SIZE_MAX:
                return
            theirs = gdb_value(symbol, at[0]) if symbol else None
        except ERRORS as error:
            why = str(error) or 'error'
        if isinstance(text, list):
            self.withheld(place, name, text[0], theirs)
        elif theirs is None:
            self.alone(place, name, text, symbol, at[1], why)
        else:
            self.both(place, name, text, symbol, at[1], theirs)

    def withheld(self, place, name, reason, theirs):
        told = self.state['told']
        (told.neither if theirs is None else told.only_gdb)[reason] += 1
        if theirs is not None and len(told.examples.setdefault(reason, [])) < 3:
            told.examples[reason].append(f'{place["function"]}: {name} at {place["at"]:#x}: gdb '
                                         f'{str(theirs)[:SHOWN]}')

    def alone(self, place, name, text, symbol, machine, why):
        """Only we have a value, or both have found memory that is not there."""
        told = self.state['told']
        try:
            if symbol:
                cairn_value(text, symbol, machine, False)
        except ERRORS + (loc_text.Unknown, ) as error:
            if 'annot access memory' in str(error) and 'annot access memory' in why:
                told.unreadable += 1
                return
        finally:
            told.integers[f'{place["id"]} {name}'].append(None)
        why = re.sub(r'0x[0-9a-f]+', 'N', why)[:SHOWN]
        told.only_cairn[why] += 1
        if told.only_cairn[why] <= 3:
            told.examples.setdefault(
                why, []).append(f'{place["function"]}: {name} at {place["at"]:#x}: cairn {text}')

    def both(self, place, name, text, symbol, machine, theirs):
        told = self.state['told']
        where = [place['id'], place['function'], name, place['at'], text]
        named = re.search(r'&([A-Za-z_.$@][\w.$@]*)', text)
        several = len(self.state['symbols'].get(named[1], [])) if named else 1
        try:
            for machine.which in range(max(several, 1)):
                ours = cairn_value(text, symbol, machine, isinstance(theirs, bytes))
                if is_same(ours, theirs):
                    break
        except ERRORS + (loc_text.Unknown, ) as error:
            if 'pieces of unknown size' in str(error):
                told.neither['pieces, whose sizes the text does not tell'] += 1
                return
            told.failed.append(where + [str(error), str(theirs)[:SHOWN]])
            return
        told.several += several > 1
        if is_same(ours, theirs):
            told.equal += 1
            if symbol.type.strip_typedefs().code in INTEGERS:
                told.integers[f'{place["id"]} {name}'].append(
                    gdb_values.to_json(gdb.Value(ours, symbol.type)) if isinstance(ours, bytes
                                                                                   ) else ours)
            told.kinds['in memory' if isinstance(theirs, bytes) else 'computed, in registers'] += 1
        else:
            size = symbol.type.strip_typedefs().sizeof
            told.different.append(where + [str(ours)[:SHOWN], str(theirs)[:SHOWN], size])


def go(job):
    gdb_values.start(job)
    # The program is asked to end while gdb runs it.
    for name in ('SIGTERM', 'SIGQUIT', 'SIGALRM', 'SIGCHLD', 'SIGPIPE'):
        gdb.execute(f'handle {name} nostop noprint pass', to_string=True)
    gdb.execute('set print elements 64')
    bias, told = gdb_values.bias_of(job), Told()
    state = {
        'told': told,
        'bias': bias,
        'symbols': job['symbols'],
        'hits': job['hits'],
        'values': job['values'],
        'globals': {}
    }
    at = {}
    for place in job['places']:
        at.setdefault(place['at'] + bias, []).append(place)
    places = [Place(those, where, state) for where, those in at.items()]
    pid = gdb.selected_inferior().pid
    timer = threading.Timer(job['seconds'], os.kill, (pid, signal.SIGINT))
    timer.start()
    gdb.execute('continue', to_string=True)
    timer.cancel()
    with open(job['output'], 'w', encoding='utf-8') as out:
        json.dump(told.as_json(), out)
    if gdb.selected_inferior().pid:
        gdb.execute('kill', to_string=True)
    return places


if 'VARS_JOB' in os.environ:
    with open(os.environ['VARS_JOB'], encoding='utf-8') as job_file:
        go(json.load(job_file))
