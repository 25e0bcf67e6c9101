# SPDX-License-Identifier: BSD-2-Clause
"""Finds the call of each event, and compares every value of it.

An event with a serial belongs to the call of that serial. Then

    matched   the call is a call of the event's function
    merged    it is a call of its twin: the two functions have the same code, and one body serves both
    LIE       there is no such call, or it is another function's: the serial itself is wrong

An event whose serial is unavailable is matched by order: between two events of the function that
have serials, calls and events must be equally many, then they pair off. Where they are not, or do
not fit (a call was folded away, or an entry is passed twice), and for functions that promise the
compiler to be const or pure, whose calls may change sites, and for recursive ones, only the weaker
test is left: some call of this function that no other event claimed must have all the values seen
("loose"). No such call: LIE.

Of calls without event ("missing") and calls with several ("doubled") the reason is told as far as
the program's text shows it; calls/missing.py tells the others'.
"""
import math
import struct

MASK64 = 2 ** 64 - 1
UNCHECKED = 'unchecked'
SAME = 'same'
LIE = 'lie'


def as_int(value):
    """An integer from any of the spellings a tracer may use; None when it is no integer."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value == int(value):
        return int(value)
    if isinstance(value, str):
        if len(value) == 1:
            return ord(value)
        try:
            return int(value, 0)
        except ValueError:
            return None
    return None


def same_int(desc, logged, value):
    bits = desc.get('bits', 8)
    number = as_int(value)
    if isinstance(value, str) and len(value) == 1 and value.isdigit() and bits == 8:
        return ord(value) == logged & 0xff or int(value) == logged
    if number is None:
        return False
    # A value that does not fit its type is wrong, whatever its low bits are.
    lo, hi = (-(1 << (bits - 1)), (1 <<
                                   (bits - 1)) - 1) if desc.get('signed') else (0, (1 << bits) - 1)
    if not lo <= number <= hi and not (bits == 8 and 0 <= number <= 255):
        return False
    return (number - logged) % (1 << bits) == 0


def same_enum(desc, logged, value):
    if isinstance(value, str) and value in desc['names']:
        return desc['names'][value] == logged
    number = as_int(value)
    return number is not None and (number - logged) % (1 << 32) == 0


def same_float(desc, logged, value):
    try:
        want, got = float.fromhex(logged), float(value)
    except (TypeError, ValueError):
        return False
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    if desc['bits'] == 32:
        got = struct.unpack('f', struct.pack('f', got))[0]
    return want == got


def compare_text(logged, value):
    if isinstance(value, list):  # [address, text]
        value = value[1]
    if value is None:
        return UNCHECKED
    if not isinstance(value, str):
        return UNCHECKED
    text = logged.encode('latin-1', 'replace').decode('utf-8', 'replace')
    return SAME if value in (logged, text) else LIE


def compare_pointer(logged, value, objects):
    if isinstance(value, list):
        value = value[0]
    number = as_int(value)
    if logged is None or objects is None:
        return UNCHECKED
    if number is None:
        return LIE
    name, off = logged
    return SAME if number == objects[name] + off else LIE


def compare(desc, logged, value, objects):
    """SAME, LIE or UNCHECKED (nothing to compare with)."""
    kind = desc['k']
    if value is None or isinstance(value, dict) and set(value) == {'unavailable'}:
        return UNCHECKED
    if kind == 'int':
        return SAME if same_int(desc, logged, value) else LIE
    if kind == 'bool':
        return SAME if as_int(value) == logged else LIE
    if kind == 'enum':
        return SAME if same_enum(desc, logged, value) else LIE
    if kind == 'float':
        return SAME if same_float(desc, logged, value) else LIE
    if kind == 'ptr' and desc['str']:
        return compare_text(logged, value)
    if kind == 'ptr':
        return compare_pointer(logged, value, objects)
    if kind == 'struct':
        return compare_members(desc, logged, value, objects)
    return compare_elements(desc, logged, value, objects)


def compare_members(desc, logged, value, objects):
    if not isinstance(value, dict):
        return LIE
    results = [compare(d, logged[name], value.get(name), objects) for name, d in desc['members']]
    return LIE if LIE in results else UNCHECKED if UNCHECKED in results else SAME


def compare_elements(desc, logged, value, objects):
    if not isinstance(value, list):
        return LIE
    results = [compare(desc['elem'], a, b, objects) for a, b in zip(logged, value)]
    return LIE if LIE in results or len(value) != desc['n'] else SAME


class Result:
    """What one build of one program came to."""

    def __init__(self):
        self.counts = dict.fromkeys([
            'functions', 'calls', 'events', 'matched', 'by_order', 'loose', 'merged', 'unmatched',
            'missing', 'doubled', 'values', 'unavailable', 'unchecked', 'lies'
        ], 0)
        self.lies = []
        self.missing = {}   # reason: [(function, serial)]
        self.doubled = {}
        self.reasons = {}   # why a value was unavailable: how often
        self.silent = []    # functions called and never seen

    def lie(self, event, name, value, call, how):
        self.counts['lies'] += 1
        self.lies.append({
            'function': event['f'], 'site': event['site'], 'name': name, 'value': value, 'how': how,
            'expected': None if call is None else call['args'].get(name), 'call': call, 'args':
            event['args'], 'hit': event['hit']
        })


class Matcher:
    def __init__(self, meta, calls, events, objects, with_code):
        self.with_code = with_code
        self.meta, self.calls, self.events, self.objects = meta['functions'], calls, events, objects
        self.result = Result()
        self.descs = {f: dict(m['params']) for f, m in self.meta.items()}
        self.by_serial = {}
        for call in calls:
            self.by_serial.setdefault(call['args']['serial'], []).append(call)
            call['seen'], call['seen_by_twin'] = [], []

    def serial_of(self, event):
        value = event['args'].get('serial')
        return None if value is None else as_int(value)

    def is_twin(self, a, b):
        return self.meta[a]['twin'] is not None and self.meta[a]['twin'] == self.meta[b]['twin']

    def match_by_serial(self, event):
        serial = self.serial_of(event)
        if 'serial' in event['args'] and serial is None:
            return self.result.lie(event, 'serial', event['args']['serial'], None, 'not a number')
        found = self.by_serial.get(serial, [])
        own = [c for c in found if c['f'] == event['f']]
        twins = [c for c in found if self.is_twin(c['f'], event['f'])]
        if own:
            event['call'] = min(own, key=lambda c: len(c['seen']))
            event['how'] = 'matched'
        elif twins:
            event['call'] = twins[0]
            event['how'] = 'merged'
        else:
            return self.result.lie(event, 'serial', serial, found[0] if found else None,
                                   f'call of {found[0]["f"]}' if found else 'no such call')
        return self.claim(event)

    def claim(self, event):
        key = 'seen' if event['how'] != 'merged' else 'seen_by_twin'
        event['call'].setdefault(key, []).append(event)
        self.result.counts['by_order' if event['how'] == 'order' else event['how']] += 1

    def match_rest(self, function):
        """Events of one function that have no serial."""
        events = [e for e in self.events if e['f'] == function and 'lie' not in e]
        calls = [c for c in self.calls if c['f'] == function]
        attrs = self.meta[function]['attrs']
        moves = 'ATTR_CONST' in attrs or 'ATTR_PURE' in attrs or self.meta[function]['shape'] in (
            'pure', 'recursive')
        position = {id(c): i for i, c in enumerate(calls)}
        gap, last = [], -1
        for event in events + [None]:
            if event is not None and 'call' not in event:
                if 'serial' not in event['args']:
                    gap.append(event)
                continue
            here = len(calls) if event is None else position.get(id(event['call']), last)
            between = [c for c in calls[last + 1:max(here, last + 1)] if not c['seen']]
            self.pair(gap, between, calls, moves)
            gap, last = [], max(last, here)

    def pair(self, gap, between, calls, moves):
        # One call without event and one passed twice leave the numbers equal: then the values do
        # not fit.
        if len(gap) == len(between) and not moves and all(
                self.fits(e, c) for e, c in zip(gap, between)):
            for event, call in zip(gap, between):
                event['call'], event['how'] = call, 'order'
                self.claim(event)
            return
        for event in gap:
            event['loose'] = True
            fits, twins = self.fitting(event, calls)
            if fits or twins:
                event['how'] = 'loose' if fits else 'merged'
                event['call'] = (fits or twins)[0]
                self.claim(event)
            elif event['args']:
                self.result.lie(event, '(all)', event['args'], None,
                                'no call of the function has these values')
            else:
                self.result.counts['unmatched'] += 1

    def fitting(self, event, calls):
        """ The calls of the function that have the event's values, or else of its twin: one body
        may be left of both. Those that have no event yet come first, so that a call of the twin is
        not taken for a second event of a call.
        """
        own = [c for c in calls if self.fits(event, c)]
        twins = [c for c in self.calls if self.is_twin(c['f'], event['f']) and self.fits(event, c)]
        new = [c for c in own if not c['seen']]
        new_twins = [c for c in twins if not c['seen'] and not c['seen_by_twin']]
        if new or new_twins:
            return new, [] if new else new_twins
        return own, [] if own else twins

    def fits(self, event, call):
        descs, rename = self.descs[event['f']], self.rename(event, call)
        return all(
            compare(descs[n], call['args'][rename[n]], v, self.objects) != LIE
            for n, v in event['args'].items())

    def rename(self, event, call):
        """The names that the parameters of the event's function have in the call's, which may be
        its twin."""
        mine, theirs = self.meta[event['f']]['params'], self.meta[call['f']]['params']
        return {a[0]: b[0] for a, b in zip(mine, theirs)}

    def compare_values(self, event):
        call, counts = event['call'], self.result.counts
        rename, descs = self.rename(event, call), self.descs[event['f']]
        for name in descs:
            if name not in event['args']:
                counts['unavailable'] += 1
                why = event['why'].get(name, 'no description')
                self.result.reasons[why] = self.result.reasons.get(why, 0) + 1
        for name, value in event['args'].items():
            if name not in descs:
                self.result.lie(event, name, value, call, 'no such parameter')
                continue
            verdict = compare(descs[name], call['args'][rename[name]], value, self.objects)
            counts['values'] += verdict == SAME
            counts['unchecked'] += verdict == UNCHECKED
            if verdict == LIE:
                self.result.lie(event, name, value, call, event['how'])

    def why_missing(self, call, seen_functions):
        m = self.meta[call['f']]
        if call.get('seen_by_twin'):
            return 'merged with its twin'
        if call['f'] not in self.with_code:
            return 'no code of it left'
        if m['shape'] == 'pure' or any(a.startswith('ATTR') for a in m['attrs']):
            return 'no side effects: folded or merged'
        if m['shape'] == 'recursive':
            return 'recursion became a loop'
        return 'other' if call['f'] in seen_functions else 'has code, never seen'

    def number_hits(self):
        """How often the event's site had been hit before: what finds the same stop in another run.
        """
        hits = {}
        for event in self.events:
            key = (event['f'], event['site'])
            event['hit'] = hits.get(key, 0)
            hits[key] = event['hit'] + 1

    def run(self):
        counts = self.result.counts
        self.number_hits()
        for event in self.events:
            if event['f'] in self.meta and self.serial_of(event) is not None:
                before = counts['lies']
                self.match_by_serial(event)
                if counts['lies'] != before:
                    event['lie'] = True
        for function in self.meta:
            self.match_rest(function)
        for event in self.events:
            if 'call' in event and event['how'] != 'loose':
                self.compare_values(event)
            elif event.get('how') == 'loose':
                counts['values'] += len(event['args'])
        self.summarise()
        return self.result

    def summarise(self):
        result, counts = self.result, self.result.counts
        seen_functions = {e['f'] for e in self.events}
        called = {c['f'] for c in self.calls}
        counts['functions'], counts['calls'], counts['events'] = len(called), len(self.calls), len(
            self.events)
        result.silent = sorted(called - seen_functions)
        for call in self.calls:
            if not call['seen']:
                counts['missing'] += 1
                result.missing.setdefault(self.why_missing(call, seen_functions), []).append(
                    (call['f'], call['args']['serial']))
            elif len(call['seen']) > 1:
                counts['doubled'] += len(call['seen']) - 1
                sites = sorted({str(e['site']) for e in call['seen']})
                why = 'loosely matched' if any(e.get('loose') for e in call['seen']) else \
                    'one site, passed again' if len(sites) == 1 else 'several sites'
                result.doubled.setdefault(why, []).append(
                    (call['f'], call['args']['serial'], sites))


def match(meta, calls, events, objects, with_code):
    """with_code: the functions of which the debug information has any site with code"""
    return Matcher(meta, calls, events, objects, with_code).run()
