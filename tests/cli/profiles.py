# SPDX-License-Identifier: BSD-2-Clause
"""Profiles that several tests read."""

# Inlined functions at both ends of a stack, recursion, and code of the kernel and of a JIT.
FOLDED = """main;work;put_[i] 61
main;work 10
main;work;read;sys_read_[k] 5
main;other;main;other 4
jitted_[j];deep;x_[i];y_[i];z 20
"""
