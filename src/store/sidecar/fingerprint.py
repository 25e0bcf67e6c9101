#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A number for the sources that decide what a sidecar says: fingerprint.py HEADER DEPFILE SRC

A cached sidecar whose maker had other sources is made anew (find.c). A comment changes the number,
too, which costs seconds of a background process; nobody has to remember to change it, which would
cost wrong answers.
"""

import hashlib
import pathlib
import sys

header, depfile, src = sys.argv[1:]
# Later modules cannot change the answer. Some of the earlier ones cannot either, but so none is
# forgotten.
layers = pathlib.Path(src, "..", "LAYERS")
modules = layers.read_text(encoding="utf-8").split()
modules = modules[:modules.index("store/sidecar") + 1]

files = sorted(f for m in modules for f in pathlib.Path(src, m).glob("*.[ch]"))
digest = hashlib.sha256()
for file in files:
    digest.update(file.name.encode() + b"\0" + file.read_bytes())
with open(header, "w", encoding="utf-8") as out:
    out.write(f"#define SIDECAR_MAKER 0x{digest.hexdigest()[:8]}u\n")
with open(depfile, "w", encoding="utf-8") as out:
    out.write(
        f"{header}: {' '.join(str(f).replace(' ', chr(92) + ' ') for f in [*files, layers])}\n")
