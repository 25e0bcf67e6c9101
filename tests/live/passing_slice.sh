#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A short slice of tests/truth/passing.py: arguments of C++ functions that get classes by value.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
exec "$top"/tests/truth/passing.py --name passing-slice --seeds 1-1
