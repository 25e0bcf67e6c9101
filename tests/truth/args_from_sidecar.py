#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Parameters in the middle of functions, from the sidecars and from the debug information of the
lab's large inputs (args_from_sidecar.c).

    args_from_sidecar.py [STRIDE]      every STRIDE-th instruction, instead of what is usual for the file

tests/cli/test_stack_args.py compares small programs, at every instruction.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

# Each with its debug file, when that is another, and a stride that takes minutes and is no multiple
# of anything.
INPUTS = {
    'libc.so.6': ('libc.debug', 7), 'libstdc++.so.6': (None, 23), 'vmlinux': (None, 1999),
    'libjvm.so': ('libjvm.debug', 1999)
}


def main():
    build = os.environ.get('CAIRN_BUILD') or os.path.dirname(common.CAIRN)
    program = os.path.join(build, 'tests', 'truth', 'args_from_sidecar')
    for name, (debug, stride) in INPUTS.items():
        path, debug_path = common.lab_input(name), common.lab_input(debug) if debug else None
        if not path or (debug and not debug_path):
            common.skip(f'args_from_sidecar {name}', 'not among the inputs of the lab')
            continue
        stride = sys.argv[1] if len(sys.argv) > 1 else str(stride)
        code, out, err = common.run([program, path, stride, *([debug_path] if debug_path else [])],
                                    7200)
        print(out + err)
        common.claim(f'args_from_sidecar {name}: {(out.splitlines() or ["nothing"])[-1]}',
                     code == 0)
    return common.finish()


if __name__ == '__main__':
    main()
