#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Walks of one's own stack in several threads while libraries come and go and signals arrive, built
with ThreadSanitizer.

    self_threads.py [SECONDS]     10 for each compiler; self/threads.c says what it does
"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402

def build(compiler):
    """The whole library with the sanitizer, kept beside what it was built of; None and why when it
    cannot be built."""
    folder = os.path.join(
        os.environ.get('CAIRN_BUILD') or os.path.dirname(common.CAIRN), 'self-threads', compiler)
    setup = [] if os.path.exists(os.path.join(folder, 'build.ninja')) else [[
        'meson', 'setup', folder, common.TOP, '-Db_sanitize=thread', '-Db_lundef=false',
        '-Dwerror=false', '-Dc_args=-w'
    ]]
    for command in [*setup, ['ninja', '-C', folder, 'tests/truth/self_threads']]:
        code, out, err = common.run(command, 1800, env={**os.environ, 'CC': compiler})
        if code != 0:
            return None, (out + err)[-2000:]
    return os.path.join(folder, 'tests', 'truth', 'self_threads'), ''


def main():
    seconds = sys.argv[1] if len(sys.argv) > 1 else '10'
    with tempfile.TemporaryDirectory(prefix='cairn-self-') as folder:
        plugin = common.compile_c([os.path.join(HERE, 'self', 'plugin.c')],
                                  os.path.join(folder, 'plugin.so'), ['-O2', '-fPIC', '-shared'])
        for compiler in ('gcc', 'clang'):
            name = f'self_threads: nothing is unordered among walks, loading, preparing and signals [{compiler}]'
            if common.have(compiler):
                common.skip(name, f'{compiler} is not installed')
                continue
            program, why = build(compiler)
            if program is None:
                common.not_ok(f'{name}: {why}')
                continue
            # The sanitizer's shadow memory has no site under every layout that the kernel chooses.
            code, out, err = common.run(['setarch', '-R', program, plugin, seconds], 600)
            print(out, end='')
            if not common.claim(name, code == 0 and 'WARNING: ThreadSanitizer' not in err):
                print(code, err[:6000])
    common.finish()


main()
