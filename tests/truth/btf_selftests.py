#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `cairn btf check --kernel` says of the BTF that the kernel's own tests load, against the
running kernel and those tests.

    btf_selftests.py [TREE]      a kernel's source tree; default: that of Debian's newest linux-source-*

The tables raw_tests and dedup_tests of tools/testing/selftests/bpf/prog_tests/btf.c are compiled as
they are into a program that writes each blob to a file. Nothing of them is kept in this project.
"""
import ctypes
import errno
import glob
import os
import platform
import re
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
import common  # noqa: E402

TESTS = 'tools/testing/selftests/bpf/prog_tests/btf.c'
NEEDED = [
    TESTS, 'tools/testing/selftests/bpf/test_btf.h', 'include/uapi/linux/btf.h',
    'include/uapi/linux/bpf.h'
]
BPF_BTF_LOAD, NR_BPF = 18, 321
WRITER = r'''
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include "test_btf.h"
struct btf_dump_type_data; struct btf_dedup_opts { size_t sz; bool force_collisions; void *btf_ext; };
#include "tables.inc"

static uint32_t name_at(const char *str, unsigned size, unsigned nth)
{
	unsigned at = 0;
	for (unsigned i = 0; at + 1 < size; i++) {
		at++;
		if (i == nth)
			return at;
		at += strlen(str + at);
	}
	return 0xffffff0;
}

static void write_blob(const char *table, unsigned i, const char *descr, int verdict, const uint32_t *types, unsigned max, const char *str,
		       unsigned size, int hdr_len, int type_off, int str_off, int str_len)
{
	static uint32_t words[1 << 16];
	unsigned n = 0, next = 0;
	char path[64];
	for (; n < max && types[n] != BTF_END_RAW; n++)
		words[n] = types[n] == NAME_TBD ? name_at(str, size, next++)
			   : IS_NAME_NTH(types[n]) ? name_at(str, size, GET_NAME_NTH_IDX(types[n]) - 1) : types[n];
	struct btf_header h = {.magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(h) + hdr_len, .type_off = type_off,
			       .type_len = 4 * n, .str_off = 4 * n + str_off, .str_len = size + str_len};
	snprintf(path, sizeof(path), "%s.%u.btf", table, i);
	FILE *f = fopen(path, "w");
	fwrite(&h, sizeof(h), 1, f);
	fwrite(words, 4, n, f);
	fwrite(str, 1, size, f);
	fclose(f);
	printf("%s\t%d\t%s\n", path, verdict, descr);
}

int main(void)
{
	for (unsigned i = 0; i < sizeof(raw_tests) / sizeof(raw_tests[0]); i++) {
		const struct btf_raw_test *t = &raw_tests[i];
		write_blob("raw", i, t->descr, !t->btf_load_err, t->raw_types, MAX_NR_RAW_U32, t->str_sec, t->str_sec_size,
			   t->hdr_len_delta, t->type_off_delta, t->str_off_delta, t->str_len_delta);
	}
	for (unsigned i = 0; i < sizeof(dedup_tests) / sizeof(dedup_tests[0]); i++) {
		const struct btf_dedup_test *t = &dedup_tests[i];
		write_blob("dedup", i, t->descr, -1, t->input.raw_types, MAX_NR_RAW_U32, t->input.str_sec, t->input.str_sec_size, 0, 0, 0, 0);
		write_blob("deduped", i, t->descr, -1, t->expect.raw_types, MAX_NR_RAW_U32, t->expect.str_sec, t->expect.str_sec_size, 0, 0,
			   0, 0);
	}
	return 0;
}
'''


def source_tree(arguments):
    """A folder with NEEDED: the argument, or from the package."""
    if arguments:
        return arguments[0]
    folder = common.lab('kernel-selftests')
    if not glob.glob(os.path.join(folder, '*', TESTS)):
        code, out, _ = common.run(['apt-cache', 'pkgnames', 'linux-source-'])
        names = [n for n in out.split() if re.fullmatch(r'linux-source-[\d.]+', n)]
        if code or not names:
            return None
        name = max(names, key=lambda n: [int(x) for x in n[len('linux-source-'):].split('.')])
        code, _, _ = common.run(['apt-get', 'download', name], 600, cwd=folder)
        for deb in glob.glob(os.path.join(folder, '*.deb')):
            subprocess.run(
                f"dpkg-deb --fsys-tarfile '{deb}' | tar xO --wildcards './usr/src/*.tar.xz' | tar xJ "
                + ' '.join(f'{name}/{path}' for path in NEEDED), shell=True, cwd=folder,
                check=False, timeout=900)
            os.unlink(deb)
    found = glob.glob(os.path.join(folder, '*', TESTS))
    return found[0][:-len(TESTS)] if found else None


def cut(text, first, last):
    start = text.index(first)
    return text[start:text.index(last, start)] + last


def write_blobs(tree, folder):
    """[(path, verdict of the tests: 1, 0, or -1 for none, what it is)]"""
    with open(os.path.join(tree, TESTS), encoding='utf-8') as file:
        text = file.read()
    raw = cut(text, '#define NAME_TBD', '\nstatic struct btf_raw_test raw_tests[] = {')
    raw += cut(text[text.index('static struct btf_raw_test raw_tests[] = {'):].split('{', 1)[1],
               '\n', '\n};')
    dedup = cut(text, 'struct btf_raw_data {', '\n};') + cut(text, 'struct btf_dedup_test {', '\n};') +\
        cut(text, '\nstatic struct btf_dedup_test dedup_tests[] = {', '\n};')
    for name, content in (('tables.inc', raw + '\n' + dedup), ('writer.c', WRITER)):
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(content)
    os.mkdir(os.path.join(folder, 'linux'))
    for header in ('btf.h', 'bpf.h'):
        os.symlink(os.path.join(os.path.abspath(tree), 'include/uapi/linux', header),
                   os.path.join(folder, 'linux', header))
    os.symlink(os.path.join(os.path.abspath(tree), NEEDED[1]), os.path.join(folder, 'test_btf.h'))
    writer = common.compile_c([os.path.join(folder, 'writer.c')], os.path.join(folder, 'writer'),
                              ['-w', '-I', folder])
    _, out, _ = common.run([writer], cwd=folder)
    rows = [line.split('\t') for line in out.splitlines()]
    return [(os.path.join(folder, path), int(verdict), descr) for path, verdict, descr in rows]


LIBC = ctypes.CDLL(None, use_errno=True)


def load(path):
    """0 when the kernel takes it, else errno."""
    with open(path, 'rb') as file:
        data = file.read()
    buffer = ctypes.create_string_buffer(data, len(data))
    attr = ctypes.create_string_buffer(128)
    ctypes.c_uint64.from_buffer(attr, 0).value = ctypes.addressof(buffer)
    ctypes.c_uint32.from_buffer(attr, 16).value = len(data)
    fd = LIBC.syscall(NR_BPF, BPF_BTF_LOAD, attr, len(attr))
    if fd < 0:
        return ctypes.get_errno()
    os.close(fd)
    return 0


def compare(rows, release, version):
    """The running kernel decides; @release is that of the tests."""
    wrong, permitted = [], True
    for path, expected, descr in rows:
        status, out, err = common.run([common.CAIRN, 'btf', 'check', f'--kernel={release}', path])
        said = status == 0
        if expected >= 0 and said != bool(expected):
            wrong.append(
                f'{descr}: Cairn {said}, tests {bool(expected)}: {(out + err).strip()[:200]}')
        actual = load(path)
        permitted = permitted and actual != errno.EPERM
        here = common.run([common.CAIRN, 'btf', 'check', f'--kernel={version}', path])
        if permitted and (here[0] == 0) != (actual == 0):
            wrong.append(
                f'{descr}: Cairn {here[0] == 0}, this kernel {actual == 0} ({actual}): {(here[1] + here[2]).strip()[:200]}'
            )
    return wrong, permitted


def main():
    tree = source_tree(sys.argv[1:])
    if not tree:
        common.skip('selftests', 'no linux-source-* package, and no tree was named')
        common.finish()
    release = re.search(r'(\d+\.\d+)', os.path.basename(os.path.normpath(tree)))
    release = release.group(1) if release else platform.release()
    with tempfile.TemporaryDirectory() as folder:
        rows = write_blobs(tree, folder)
        wrong, permitted = compare(rows, release,
                                   re.match(r'\d+\.\d+', platform.release()).group(0))
    for line in wrong:
        print(f'    {line}')
    if not permitted:
        common.skip('running kernel', 'BPF_BTF_LOAD is not permitted')
    common.claim(
        f'{len(rows)} blobs of the tests of Linux {release}: {len(rows) - len(wrong)} verdicts agree',
        rows and not wrong)
    common.finish()


if __name__ == "__main__":
    main()
