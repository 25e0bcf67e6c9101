# SPDX-License-Identifier: BSD-2-Clause
"""Inside of gdb: for each line "attach PID", "core PROGRAM CORE" or "here" of standard input, one
line of JSON {tid: [pc, ...]}.

The program counters of real frames only: inlined calls have none of their own, and tail calls,
which gdb deduces from debug information, have no frame any more.
"""
import json
import sys

import gdb


def frames():
    pcs = []
    frame = gdb.newest_frame()
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            pcs.append(frame.pc())
        try:
            frame = frame.older()
        except gdb.error:
            break
    return pcs


def stacks():
    found = {}
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        found[thread.ptid[1] or thread.ptid[0]] = frames()
    return found


def answer(words):
    if words[0] == 'here':
        return stacks()
    if words[0] == 'attach':
        gdb.execute(f'attach {words[1]}', to_string=True)
        found = stacks()
        gdb.execute('detach', to_string=True)
        return found
    gdb.execute(f'file {words[1]}', to_string=True)
    gdb.execute(f'core-file {words[2]}', to_string=True)
    return stacks()


for setting in ('confirm off', 'pagination off', 'debuginfod enabled off',
                'backtrace limit unlimited', 'backtrace past-main on', 'print thread-events off'):
    try:
        gdb.execute(f'set {setting}')
    except gdb.error:
        pass
for line in sys.stdin:
    try:
        reply = answer(line.split())
    except gdb.error as error:
        reply = {'error': str(error)}
    print('frames ' + json.dumps(reply), flush=True)
