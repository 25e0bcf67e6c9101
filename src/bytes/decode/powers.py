#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Write the powers of ten that shortest.c multiplies with: 10^k, cut to 128 bits and rounded up, k
from -292 to 324.

Entry k is the smallest integer g with g * 2^(floor(log2(10^k)) - 127) >= 10^k.
"""

LOW, HIGH = -292, 324


def power(k):
    """10^k as a fraction, then scaled so that its top bit is bit 127."""
    top, bottom = (10**k, 1) if k >= 0 else (1, 10**-k)
    log2 = top.bit_length() - bottom.bit_length()
    if top << max(-log2, 0) < bottom << max(log2, 0):
        log2 -= 1
    shift = 127 - log2
    top, bottom = top << max(shift, 0), bottom << max(-shift, 0)
    return -(-top // bottom)


print("/* Made by powers.py. */")
print(f"enum {{ POWER_LOW = {LOW}, POWER_HIGH = {HIGH} }};")
print("static const struct power powers[] = {")
for k in range(LOW, HIGH + 1):
    g = power(k)
    print(f"\t{{UINT64_C({g >> 64:#018x}), UINT64_C({g & (1 << 64) - 1:#018x})}}, /* {k} */")
print("};")
