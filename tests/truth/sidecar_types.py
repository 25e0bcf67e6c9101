#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every type of the lab's large inputs, in a sidecar and in the debug information, node by node
(sidecar/types.c).

From every parameter, argument and result of every function, and from every name, through members
and pointers. The verbs print what is in these nodes; tests/cli/test_sidecar_types.py compares what
they print, on small programs.
"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

# Each with its debug file, when that is another.
INPUTS = {
    'libc.so.6': 'libc.debug', 'libstdc++.so.6': None, 'vmlinux': None, 'libjvm.so': 'libjvm.debug'
}


def compare(name, debug, program, folder):
    path, sidecar = common.lab_input(name), os.path.join(folder, 'types.cairn')
    debug = common.lab_input(debug) if debug else None
    if not path or (INPUTS[name] and not debug):
        common.skip(f'sidecar_types {name}', 'not among the inputs of the lab')
        return
    code, _, err = common.run(
        [common.CAIRN, 'sidecar', path, '-o', sidecar, *(['--debug-file', debug] if debug else [])],
        900)
    if code != 0:
        print(err)
        common.not_ok(f'sidecar_types {name}')
        return
    code, out, err = common.run([program, path, sidecar, *([debug] if debug else [])], 3600)
    print(out + err)
    common.claim(f'sidecar_types {name}: {(out.splitlines() or ["nothing"])[-1]}', code == 0)


def main():
    build = os.environ.get('CAIRN_BUILD') or os.path.dirname(common.CAIRN)
    program = os.path.join(build, 'tests', 'truth', 'sidecar_types')
    with tempfile.TemporaryDirectory() as folder:
        for name, debug in INPUTS.items():
            compare(name, debug, program, folder)
    return common.finish()


if __name__ == '__main__':
    main()
