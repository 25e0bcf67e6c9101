# SPDX-License-Identifier: BSD-2-Clause
"""What tests of cairn trace share."""

from claims import Skip, cairn, need_root


def trace(*words, **kwargs):
    """cairn trace, or skip where tracing is not possible. Hot programs are traced, too."""
    need_root()
    r = cairn("trace", "--max-slowdown", "off", *words, **kwargs)
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    return r
