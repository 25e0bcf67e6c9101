#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The claims of tests/cli/test_profile_continuous.py with 600 windows in which memory may not grow,
instead of 30: two minutes."""

import os
import sys

TEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli/test_profile_continuous.py")
os.environ.setdefault("CAIRN_WINDOWS", "600")
os.execv(sys.executable, [sys.executable, TEST])
