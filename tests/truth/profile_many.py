#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile -a of 5,000 processes, one of which has 65,000 mappings: tests/cli/
test_profile_crowd.py at full size.

    profile_many.py [PROCESSES MAPPINGS_OF_CODE]
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TEST = os.path.join(HERE, '..', 'cli', 'test_profile_crowd.py')

if __name__ == '__main__':
    # Between two mappings of code there is one of none; Linux allows a process 65,530.
    os.environ['CROWD'] = ':'.join(sys.argv[1:3] if len(sys.argv) > 2 else ('5000', '32500'))
    os.execv(sys.executable, [sys.executable, TEST])
