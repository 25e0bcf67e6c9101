#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh FUZZER REPLAY: fuzz from the seeds for CAIRN_FUZZ_SECONDS; what crashes stays in the build
# directory.
set -eu
corpus=$1.corpus
mkdir -p "$corpus"
"$2" --write "$corpus"
# A limit on one input's time and memory is part of the promise: no hang, no huge allocation.
"$1" "$corpus" -max_total_time="${CAIRN_FUZZ_SECONDS:-30}" -timeout=10 -rss_limit_mb=1024 \
	-artifact_prefix="$1." -print_final_stats=1 -verbosity=0
