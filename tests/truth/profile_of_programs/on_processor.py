# SPDX-License-Identifier: BSD-2-Clause
"""The time that processes are on a processor, from switch to switch, as perf records them.

The kernel's processor time is longer where a process waits often: a switch to a thread that was
woken is charged from its waking on, although it begins later, in a virtual machine 10 to 20 us.
"""
import contextlib
import os
import re
import signal
import subprocess

LINE = re.compile(r'\s(\d+)\s+\[(\d+)\]\s+(\d+)\.(\d+): PERF_RECORD_(\w+)\s*(.*)$')
FORKED = re.compile(r'\(\d+:(\d+)\):\((\d+):(\d+)\)')


class Watch:
    """Switches of all threads of the machine, until end()."""

    def __init__(self, folder):
        self.path = os.path.join(folder, 'switches.data')
        self.process = subprocess.Popen([
            'perf', 'record', '-q', '-e', 'dummy:u', '--switch-events', '-a', '-m', '4M', '-o',
            self.path
        ], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(60)

    def ns_of(self, pid):
        """Of a process and all that descends from it; None: switches were lost."""
        script = subprocess.Popen([
            'perf', 'script', '-i', self.path, '--ns', '--show-switch-events',
            '--show-task-events', '--show-lost-events'
        ], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors='replace')
        total = add_up(script.stdout, pid)
        script.wait()
        return total


def add_up(lines, pid):
    tids, since, total = {pid}, {}, 0
    for line in lines:
        found = LINE.search(line)
        if not found:
            continue
        tid, processor, seconds, ns, kind, rest = found.groups()
        if kind.startswith('LOST'):
            return None
        at = int(seconds) * 1000000000 + int(ns)
        forked = FORKED.search(rest) if kind.startswith('FORK') else None
        if forked and int(forked[3]) in tids:
            tids.add(int(forked[1]))
        if not kind.startswith('SWITCH') or int(tid) not in tids:
            continue
        if rest.startswith('IN'):
            since[processor] = at
        else:
            total += at - since.pop(processor, at)
    return total
