# SPDX-License-Identifier: BSD-2-Clause
"""Compares the fields a program printed with the value Cairn decoded from the same memory."""
import math
import struct


def integer(value):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            return int(value, 0)
        except ValueError:
            return None
    return None


def enum_number(names, value):
    """From a number, a name, or names and bits without a name joined by |."""
    if not isinstance(value, str):
        return integer(value)
    total = 0
    for part in value.split('|'):
        number = names.get(part, integer(part))
        if number is None:
            return None
        total |= number
    return total


def same_float(bits, expected, value):
    try:
        want, got = float.fromhex(expected), float(value)
    except (TypeError, ValueError):
        return False
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    return want == (struct.unpack('f', struct.pack('f', got))[0]
                    if bits == 32 and not math.isinf(got) else got)


def same_scalar(desc, expected, value):
    kind = desc[0]
    if kind == 'int':
        # A bit-field of signed type prints as a negative number; exact equality, no wrapping.
        return integer(value) == expected
    if kind == 'char':
        if isinstance(value, str):
            return len(value) == 1 and ord(value) == expected
        return integer(value) is not None and integer(value) % 256 == expected
    if kind == 'bool':
        return integer(value) == expected
    if kind == 'enum':
        number = enum_number(desc[1], value)
        return number is not None and (number - expected) % (1 << desc[2]) == 0
    if kind == 'float':
        return same_float(desc[1], expected, value)
    if kind == 'ptr':
        return integer(value) == expected
    return value == expected  # text


def flat(desc):
    """Members by name, those of anonymous members included."""
    for name, d in desc[1]:
        if name is None:
            yield from flat(d)
        else:
            yield name, d


def differences(desc, expected, value, path=''):
    """Yields (path, expected, value) for each field that differs; and counts by yielding (path,
    None, None) for equal ones."""
    if desc[0] == 'struct':
        if not isinstance(value, dict):
            yield path, expected, value
            return
        for name, d in flat(desc):
            yield from differences(d, expected[name], value.get(name), f'{path}.{name}')
        extra = set(value) - {name for name, _ in flat(desc)}
        if extra:
            yield path, 'no further members', sorted(extra)
    elif desc[0] == 'array':
        if not isinstance(value, list) or len(value) != desc[1]:
            yield path, expected, value
            return
        for i, (a, b) in enumerate(zip(expected, value)):
            yield from differences(desc[2], a, b, f'{path}[{i}]')
    elif same_scalar(desc, expected, value):
        yield path, None, None
    else:
        yield path, expected, value
