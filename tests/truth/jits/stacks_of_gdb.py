# SPDX-License-Identifier: BSD-2-Clause
"""Inside gdb: attach to $CAIRN_PID a few times; of the thread $CAIRN_TID each time the frames, as
(pc, name, solib)."""
import json
import os

import gdb

pid, tid, rounds = (int(os.environ['CAIRN_' + word]) for word in ('PID', 'TID', 'ROUNDS'))
for command in ('set pagination off', 'set confirm off', 'set debuginfod enabled off',
                'set backtrace past-main on', 'set backtrace past-entry on',
                'set backtrace limit 2000'):
    try:
        gdb.execute(command)
    except gdb.error:
        pass
for _ in range(rounds):
    frames, error = [], None
    try:
        gdb.execute(f'attach {pid}', to_string=True)
        for thread in gdb.selected_inferior().threads():
            if thread.ptid[1] == tid:
                thread.switch()
        frame = gdb.newest_frame()
        while frame:
            frames.append((frame.pc(), frame.name(), gdb.solib_name(frame.pc())))
            frame = frame.older()
    except gdb.error as e:
        error = str(e)
    print('stack ' + json.dumps({'frames': frames, 'error': error}), flush=True)
    try:
        gdb.execute('detach', to_string=True)
    except gdb.error:
        pass
