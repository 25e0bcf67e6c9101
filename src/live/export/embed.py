#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A page with marks as pieces of text in C: embed.py PAGE >page.h

Between the pieces stand marks: {NULL, 'T'} is for the title, {NULL, 'P'} for the profile. The
comment is left out.
"""

import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as page:
    text = re.sub(r"<!-- .*? -->\n", "", page.read(), flags=re.S)
for piece in re.split(r"(@TITLE@|@PROFILE@)", text):
    if piece in ("@TITLE@", "@PROFILE@"):
        print(f"{{NULL, '{piece[1]}'}},")
    else:
        # Pieces of a line each: compilers limit the length of one literal.
        for line in piece.splitlines(keepends=True):
            print("{" + json.dumps(line).replace("\\u2026", "\\xe2\\x80\\xa6") + ", 0},")
