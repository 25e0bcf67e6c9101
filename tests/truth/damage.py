#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The claims of tests/cli/test_damage.py with 12,000 damages instead of 700: some minutes."""

import os
import sys

TEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli/test_damage.py")
os.environ.setdefault("CAIRN_DAMAGES", "2000")
os.execv(sys.executable, [sys.executable, TEST])
