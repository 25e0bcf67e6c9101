#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bytes.py FILE NAME: a C array of that name with the bytes of the file, on standard output."""

import sys

path, name = sys.argv[1:]
with open(path, "rb") as file:
    content = file.read()
print(f"static const unsigned char {name}[] = {{")
for at in range(0, len(content), 16):
    print("\t" + " ".join(f"{byte}," for byte in content[at:at + 16]))
print("};")
