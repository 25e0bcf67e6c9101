#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A text as strings of C, one a line: lines.py TEXT >text.h"""

import json
import sys

with open(sys.argv[1], encoding="ascii") as text:
    for line in text:
        # Question marks apart, as two of them begin a trigraph.
        print(json.dumps(line).replace("??", '?" "?') + ",")
