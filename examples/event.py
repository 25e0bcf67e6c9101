# SPDX-License-Identifier: BSD-2-Clause
"""event.h in Python, with ctypes and, for the first, as a format of the module struct."""

import ctypes
import struct
from ctypes import Structure, c_char, c_int, c_int8, c_long, c_uint8, c_uint32, c_uint64, c_void_p

FILE_NAME_LEN = 256
TASK_COMM_LEN = 16

EVENT_FORMAT = "<I256s16s"


class Event(Structure):
    _fields_ = [("pid", c_uint32),
                ("filename", c_char * FILE_NAME_LEN),
                ("comm", c_char * TASK_COMM_LEN)]


class Position(ctypes.Structure):
    _fields_ = [("offset", c_uint64), ("whence", c_uint8)]


class PaddedEvent(Structure):
    _fields_ = [("c", c_int8), ("l", c_long), ("i", c_int), ("x", c_void_p)]


class Access(Structure):
    _fields_ = [("event", Event), ("kind", c_uint32), ("at", Position), ("failed", c_uint8),
                ("error", c_int), ("when_ns", c_uint64)]


def pid_of(record):
    """The first member alone, of a record of any length."""
    return struct.unpack_from("<I", record)[0]
