# SPDX-License-Identifier: BSD-2-Clause
"""Directories of cgroup v2, for tests of what is chosen by them."""

import contextlib
import os
import subprocess

from claims import Skip, folder, need_root


@contextlib.contextmanager
def cgroup(*below):
    """A new directory of cgroup v2, in a mount of our own if there is none; directories in it."""
    need_root()
    top = os.path.join(folder(), "cgroup")
    os.makedirs(top, exist_ok=True)
    if subprocess.run(["mount", "-t", "cgroup2", "none", top], capture_output=True,
                      check=False).returncode:
        raise Skip("cgroup v2 cannot be mounted here")
    path = os.path.join(top, f"cairn-test-{os.getpid()}")
    made = [path, *(os.path.join(path, name) for name in below)]
    try:
        try:
            for directory in made:
                os.mkdir(directory)
        except OSError as e:
            raise Skip(f"a cgroup cannot be made here: {e}") from e
        yield path
        for directory in reversed(made):
            os.rmdir(directory)
    finally:
        subprocess.run(["umount", top], check=False)
