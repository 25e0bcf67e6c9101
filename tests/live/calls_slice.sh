#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A short slice of tests/truth/calls.py, so that `make check` sees a wrong argument value the day it
# appears.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
seeds=1-2 configs=gcc-O2,clang-O2,gcc-O1,clang-O1,gcc-O3,gcc-O2-flto
# Sanitizers look for errors of the code and not of answers.
case $(basename "${CAIRN_BUILD-}") in *san*) seeds=1-1 configs=gcc-O2,clang-O2 ;; esac
"$top"/tests/truth/calls_selftest.py || exit 1
exec "$top"/tests/truth/calls.py --name slice --seeds "$seeds" --functions 60 --seconds 60 \
	--configs "$configs"
