# SPDX-License-Identifier: BSD-2-Clause
"""What tests of cairn profile share."""

from claims import Skip, cairn, need_root


def profile(*words, **kwargs):
    """cairn profile, or skip where profiling is not possible."""
    need_root()
    r = cairn("profile", *words, **kwargs)
    if r.status == 3 and ("BTF" in r.err or "kernel" in r.err and "not permitted" not in r.err):
        raise Skip(" ".join(r.err.split()))
    return r


def folded_lines(lines):
    """(stack, its number) of each line of a .folded file; a comment says what was lost."""
    return [(stack, int(n)) for stack, n in (line.rsplit(" ", 1) for line in lines if line[0] != "#")]
