# SPDX-License-Identifier: BSD-2-Clause
"""Profiles that several tests read."""

# Inlined functions at both ends of a stack, recursion, and code of the kernel and of a JIT.
FOLDED = """main;work;put_[i] 61
main;work 10
main;work;read;sys_read_[k] 5
main;other;main;other 4
jitted_[j];deep;x_[i];y_[i];z 20
"""


def number(n):
    """A number of protocol buffers."""
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(key, value):
    """A field of protocol buffers: a number, or bytes."""
    if isinstance(value, int):
        return number(key << 3) + number(value)
    return number(key << 3 | 2) + number(len(value)) + value


def pprof(names, samples, unit=b"count", threads=()):
    """A pprof profile of functions with these names; samples are ([index of a name], value). All
    are in the file "/x/lib\xff.so"."""
    strings = [
        b"", b"events", unit, b"/x/lib\xff.so", b"pid", b"tid", b"thread", *names,
        *(name for *_, name in threads)
    ]
    message = field(1, field(1, 1) + field(2, 2))
    for i, (stack, value) in enumerate(samples):
        body = field(1, b"".join(number(at + 1)
                                 for at in stack)) + field(2, number(value & (1 << 64) - 1))
        if threads:
            pid, tid, name = threads[i % len(threads)]
            body += field(3, field(1, 4) + field(3, pid)) + field(3, field(1, 5) + field(3, tid))
            body += field(3, field(1, 6) + field(2, strings.index(name)))
        message += field(2, body)
    message += field(3, field(1, 1) + field(2, 0x1000) + field(3, 0x100000) + field(5, 3))
    for i in range(len(names)):
        message += field(
            4,
            field(1, i + 1) + field(2, 1) + field(3, 0x1000 + i) + field(4, field(1, i + 1)))
        message += field(5, field(1, i + 1) + field(2, i + 7))
    return message + b"".join(field(6, text) for text in strings)
