# SPDX-License-Identifier: BSD-2-Clause
"""Sidecars as bytes, for tests that change them: docs/formats/sidecar.md has the layout of the
seal."""

import struct
import zlib

SEAL, HEAD, PAGE = 64, 24, 1024


def head_size(n_pages):
    return SEAL + (HEAD + 4 * n_pages + 7) // 8 * 8


def pages_in(size):
    n = 0
    while head_size(n) + n * PAGE < size:
        n += 1
    return n


def seal(data):
    """The same bytes with checksums that fit them: what somebody writes who knows the format."""
    data = bytearray(data)
    n = pages_in(len(data))
    first = head_size(n)
    sums = [zlib.crc32(data[at:at + PAGE]) for at in range(first, len(data), PAGE)]
    struct.pack_into(f"<8sQII{n}I", data, SEAL, b"cairnsum", len(data), n, 0, *sums)
    struct.pack_into("<I", data, SEAL + 20, zlib.crc32(data[:first]))
    return bytes(data)


def seal_served(data):
    """The same of a file for a debuginfod, which has a sidecar inside."""
    at = data.index(b"cairnsum", SEAL + 8) - SEAL
    size = struct.unpack_from("<Q", data, at + SEAL + 8)[0]
    return seal(data[:at] + seal(data[at:at + size]) + data[at + size:])


def reseal(path):
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "r+b") as file:
        file.write(seal(data))
