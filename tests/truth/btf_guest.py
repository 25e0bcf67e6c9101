#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `cairn btf check --kernel=VERSION` says, against BPF_BTF_LOAD of the running kernel and of a
newer one that QEMU boots.

The blobs are structs with fields that the kernel knows (those of the live test and random ones),
chains of qualifiers and type tags, and the tables of the kernel's own tests. The newer kernel is
that of the lab ($CAIRN_LAB/kernels): its boot script and 7.x/vmlinuz.
"""
import errno
import itertools
import os
import platform
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.path[:0] = [
    os.path.dirname(os.path.abspath(__file__)),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'live')
]
import btf_selftests  # noqa: E402
import common  # noqa: E402

LAB = os.path.join(
    os.environ.get('CAIRN_LAB') or os.path.expanduser('~/.cache/cairn-lab'), 'kernels')
BOOT, KERNEL = os.path.join(LAB, 'boot'), os.path.join(LAB, '7.x', 'vmlinuz')
RANDOM, SEED = 3000, 20
INT, PTR, ARRAY, STRUCT, TYPEDEF, VOLATILE, CONST, DECL_TAG, TYPE_TAG = 1, 2, 3, 4, 8, 9, 10, 17, 18
# name: (bytes, alignment)
KNOWN = {
    'bpf_spin_lock': (4, 4), 'bpf_res_spin_lock': (4, 4), 'bpf_refcount': (4, 4), 'bpf_list_head':
    (16, 8), 'bpf_list_node': (24, 8), 'bpf_rb_root': (16, 8), 'bpf_rb_node': (32, 8), 'bpf_timer':
    (16, 8)
}


class Blob:
    """Records of BTF, one after the other."""

    def __init__(self):
        self.types, self.strings, self.n = b'', b'\0', 0

    def string(self, text):
        if not text:
            return 0
        self.strings += text.encode() + b'\0'
        return len(self.strings) - len(text) - 1

    def add(self, kind, name, word, *more, vlen=0, flag=0):
        self.types += struct.pack(f'<III{len(more)}I', self.string(name),
                                  flag << 31 | kind << 24 | vlen, word, *more)
        self.n += 1
        return self.n

    def struct(self, name, members, size):
        """members: [(name, type, offset)]"""
        words = [
            word for member, type_id, at in members
            for word in (self.string(member), type_id, 8 * at)
        ]
        return self.add(STRUCT, name, size, *words, vlen=len(members))

    def write(self, path):
        head = struct.pack('<HBBIIIII', 0xeb9f, 1, 0, 24, 0, len(self.types), len(self.types),
                           len(self.strings))
        with open(path, 'wb') as file:
            file.write(head + self.types + self.strings)


class Fields:
    """A random struct whose members are mostly locks, nodes and counts, some of them in structs of
    their own or in arrays."""

    def __init__(self, seed):
        self.random, self.blob = random.Random(seed), Blob()
        self.integer = self.blob.add(INT, 'int', 4, 1 << 24 | 32)
        self.sizes = {self.integer: (4, 4)}
        self.known = {}
        for name, (size, align) in KNOWN.items():
            odd = 4 if self.random.random() < 0.01 else 0
            self.known[name] = self.blob.struct(name, [], size + odd)
            self.sizes[self.known[name]] = (size + odd, align)
        # A kptr to a struct that the kernel has, too, needs a destructor of that kernel.
        self.own = self.blob.struct('cairn_own', [('x', self.integer, 0)], 4)
        self.owner()
        record = self.record('t', 0)
        self.record('s', self.random.choice((1, 1, 2)), record)

    def owner(self):
        """What lists and trees contain."""
        members = [('n', self.known['bpf_list_node'], 0), ('r', self.known['bpf_rb_node'], 24),
                   ('c', self.known['bpf_refcount'], 56)]
        self.blob.struct('o', members, 64)

    def pointer(self):
        to = self.random.choice((0, self.integer, self.own, self.own, self.own))
        for _ in range(self.random.choice((0, 1, 1, 1, 1, 2))):
            if self.random.random() < 0.2:
                to = self.blob.add(CONST, '', to)
            if self.random.random() < 0.1:
                to = self.blob.add(TYPEDEF, 't', to)
            to = self.blob.add(
                TYPE_TAG,
                self.random.choice(
                    ('kptr', 'kptr', 'kptr', 'percpu_kptr', 'kptr_untrusted', 'uptr', 'user')), to)
        made = self.blob.add(PTR, '', to)
        if self.random.random() < 0.1 and not to:
            made = self.blob.add(self.random.choice((VOLATILE, CONST)), '', made)
        self.sizes[made] = (8, 8)
        return made

    def member(self, inner):
        rare = self.random.random()
        if inner and rare < 0.3:
            made = self.random.choice(inner)
        elif rare < 0.4:
            made = self.pointer()
        elif rare < 0.5:
            made = self.integer
        else:
            made = self.known[self.random.choices(list(KNOWN), (5, 2, 4, 2, 5, 1, 2, 1))[0]]
        if self.random.random() < 0.12:
            n = self.random.choice((0, 1, 1, 2, 5, 10))
            array = self.blob.add(ARRAY, '', 0, made, self.integer, n)
            size, align = self.sizes[made]
            self.sizes[array] = (n * size, align)
            return array
        return made

    def record(self, name, depth, *inner):
        inner = list(inner)
        for i in range(depth):
            inner.append(self.record(f'{name}_{i}', depth - 1, *inner))
        members, at, is_packed = [], 0, self.random.random() < 0.15
        for i in range(self.random.choice((1, 2, 2, 3, 3, 4, 12))):
            made = self.member(inner)
            size, align = self.sizes[made]
            if is_packed:
                at += self.random.choice((0, 0, 0, 2, 4))
            else:
                at += -at % align
            members.append((f'm{i}', made, at))
            at += size
        made = self.blob.struct(name, members, at)
        self.sizes[made] = (at, 8)
        for i, (_, member, _) in enumerate(members):
            contents = {
                self.known['bpf_list_head']: 'contains:o:n', self.known['bpf_rb_root']:
                'contains:o:r'
            }.get(member)
            if contents and self.random.random() < 0.9:
                self.blob.add(DECL_TAG, contents, made, i)
        return made


def write_chains(folder):
    """Two to four pointers, qualifiers, typedefs and type tags, the outermost first."""
    names = {PTR: '', CONST: '', VOLATILE: '', TYPEDEF: 't', TYPE_TAG: 'tag'}
    for length in (2, 3, 4):
        for chain in itertools.product(names, repeat=length):
            if TYPE_TAG not in chain:
                continue
            blob = Blob()
            blob.add(INT, 'int', 4, 1 << 24 | 32)
            for i, kind in enumerate(chain):
                blob.add(kind, names[kind], i + 3 if i + 1 < length else 1)
            blob.write(os.path.join(folder, 'chain.' + '-'.join(str(kind) for kind in chain)))


def write_fields(folder):
    for i in range(RANDOM):
        Fields(SEED + i).blob.write(os.path.join(folder, f'random.{i}'))
    if common.have('clang', 'llvm-objcopy'):
        common.skip('structs of the live test', 'no clang or llvm-objcopy')
        return
    import test_btf_load
    for i, case in enumerate(test_btf_load.FIELD_CASES):
        test_btf_load.write_case(case, os.path.join(folder, f'fields.{i}'))


def write_selftests(folder):
    tree = btf_selftests.source_tree([])
    if not tree:
        common.skip('tables of the kernel\'s tests', 'no linux-source-* package')
        return
    with tempfile.TemporaryDirectory() as build:
        for path, _, _ in btf_selftests.write_blobs(tree, build):
            os.rename(path, os.path.join(folder, os.path.basename(path)))


def disagreements(folder, verdicts, version):
    wrong = []
    for name, actual in sorted(verdicts.items()):
        status, out, err = common.run(
            [common.CAIRN, 'btf', 'check', f'--kernel={version}',
             os.path.join(folder, name)])
        if (status == 0) != (actual == 0):
            wrong.append(
                f'{name}: Cairn {status}, Linux {version} errno {actual}: {(out + err).strip()[-200:]}'
            )
    return wrong


def judge(which, folder, verdicts, version):
    wrong = disagreements(folder, verdicts, version)
    for line in wrong[:40]:
        print(f'    {line}')
    taken = sum(1 for e in verdicts.values() if e == 0)
    print(f'    {which}, Linux {version}: takes {taken} of {len(verdicts)} blobs')
    common.claim(
        f'{which}, Linux {version}: {len(verdicts) - len(wrong)} of {len(verdicts)} verdicts agree',
        not wrong and taken > 100 and len(verdicts) - taken > 100)


def running(folder):
    verdicts = {name: btf_selftests.load(os.path.join(folder, name)) for name in os.listdir(folder)}
    if errno.EPERM in verdicts.values():
        common.skip('running kernel', 'BPF_BTF_LOAD is not permitted')
        return
    judge('running kernel', folder, verdicts, re.match(r'\d+\.\d+', platform.release()).group(0))


def guest(root, folder):
    missing = common.have('qemu-system-x86_64', 'cpio',
                          'gcc') + [path for path in (BOOT, KERNEL) if not os.path.exists(path)]
    if missing:
        common.skip('guest', 'missing: ' + ', '.join(missing))
        return
    common.compile_c([os.path.join(common.HERE, 'guest', 'load.c')], os.path.join(root, 'init'),
                     ['-static', '-O1', '-Wall'])
    for name in ('proc', 'dev'):
        os.mkdir(os.path.join(root, name))
    console = subprocess.run([BOOT, KERNEL, root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             timeout=600, check=False)
    text = console.stdout.decode('utf-8', 'replace')
    verdicts = {name: int(error) for name, error in re.findall(r'^blob (\S+) (\d+)', text, re.M)}
    release = re.search(r'^kernel (\d+\.\d+)', text, re.M)
    if not common.claim(f'the guest loads {len(os.listdir(folder))} blobs', release
                        and len(verdicts) == len(os.listdir(folder))):
        print(text[-2000:])
        return
    judge('guest', folder, verdicts, release.group(1))


def main():
    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, 'blobs')
        os.mkdir(folder)
        write_chains(folder)
        write_fields(folder)
        write_selftests(folder)
        running(folder)
        guest(root, folder)
    common.finish()


main()
