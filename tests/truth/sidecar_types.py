#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every type of the lab's large inputs, in a sidecar and in the debug information, node by node (sidecar/types.c).

From every parameter, argument and result of every function, and from every name, through members and pointers. The verbs print what is in these
nodes; tests/cli/test_sidecar_types.py compares what they print, on small programs.
"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

INPUTS = ('libc.so.6', 'libstdc++.so.6', 'vmlinux', 'libjvm.so')


def compare(name, program, folder):
    path, sidecar = common.lab_input(name), os.path.join(folder, 'types.cairn')
    if not path:
        common.skip(f'sidecar_types {name}', 'not among the inputs of the lab')
        return
    code, _, err = common.run([common.CAIRN, 'pack', path, '-o', sidecar], 900)
    if code != 0:
        print(err)
        common.not_ok(f'sidecar_types {name}')
        return
    code, out, err = common.run([program, path, sidecar], 3600)
    print(out + err)
    common.claim(f'sidecar_types {name}: {(out.splitlines() or ["nothing"])[-1]}', code == 0)


def main():
    build = os.environ.get('CAIRN_BUILD') or os.path.dirname(common.CAIRN)
    program = os.path.join(build, 'tests', 'truth', 'sidecar_types')
    with tempfile.TemporaryDirectory() as folder:
        for name in INPUTS:
            compare(name, program, folder)
    return common.finish()


if __name__ == '__main__':
    main()
