#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The paragraphs of docs/reasons.md as a table in C: reasons.py PAGE >reasons.h

A row has the word, the text with its lines, and the text as one line.
"""

import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as page:
    text = page.read()
for word, paragraph in re.findall(r"^### (\S+)\n\n(.*?)(?=\n#|\Z)", text, re.M | re.S):
    # What people read in a terminal: no stars and no backquotes.
    plain = re.sub(r"(?<!\w)\*([^*]+)\*", r"\1", paragraph).replace("`", "").strip()
    plain = re.sub(r"\b([\w-]+\.md)\b", r"docs/findings/\1", plain)
    print("{" + ", ".join(json.dumps(s) for s in (word, plain, " ".join(plain.split()))) + "},")
