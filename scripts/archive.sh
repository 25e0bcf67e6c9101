#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# archive.sh OUT OBJECT...: an archive whose only global names are those of the public headers.
#
# A static library's hidden names are names of the program that links it: its own `int next(int)`
# would be defined twice. So all objects become one, and in that the hidden names become local.
set -eu
out=$1
shift
object=${out%.a}.o
rm -f "$out" "$object"
${LD:-ld} -r -o "$object" "$@"
${OBJCOPY:-objcopy} --localize-hidden "$object"
${AR:-ar} rcsD "$out" "$object"
rm -f "$object"
