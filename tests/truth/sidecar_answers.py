#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Whole outputs of every verb, from the sidecars and from the debug information of real programs:
the same, byte by byte.

    sidecar_answers.py [NAME...]      only these programs

The programs are Debian's, whose debug files are packages of their own, programs built from sources,
and modules of the lab's kernels. Of each: all functions, all types, text and JSON. Of what a verb
prints of one type at a time, decode's and of large programs bind's, there is a sample.
"""
import glob
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import common  # noqa: E402
import sources  # noqa: E402

# Files of packages, and the package with the debug files. C, then C++.
PACKAGES = {
    'vsftpd': ('vsftpd', 'vsftpd-dbg', 'usr/sbin/vsftpd'), 'flowgrind':
    ('flowgrind', 'flowgrind-dbg', 'usr/sbin/flowgrindd'), 'tcsd': ('trousers', 'trousers-dbg',
                                                                    'usr/sbin/tcsd'), 'tftpd':
    ('tftpd-hpa', 'tftp-hpa-dbg', 'usr/sbin/in.tftpd'), 'dvdbackup': ('dvdbackup', 'dvdbackup-dbg',
                                                                      'usr/bin/dvdbackup'),
    'libenca': ('libenca0', 'libenca-dbg', 'usr/lib/x86_64-linux-gnu/libenca.so.0.*'), 'libgsl':
    ('libgsl27', 'libgsl-dbg', 'usr/lib/x86_64-linux-gnu/libgsl.so.*'), 'libctf':
    ('libctf0', 'libctf0-dbg', 'usr/lib/x86_64-linux-gnu/libctf.so.*'), 'libivykis':
    ('libivykis0', 'libivykis0-dbg', 'usr/lib/x86_64-linux-gnu/libivykis.so.*'), 'libedac':
    ('libedac1', 'libedac1-dbg', 'usr/lib/libedac.so.*'), 'libkrb5':
    ('libkrb5-3', 'libkrb5-dbg', 'usr/lib/x86_64-linux-gnu/libkrb5.so.*'), 'libgssapi':
    ('libgssapi-krb5-2', 'libkrb5-dbg', 'usr/lib/x86_64-linux-gnu/libgssapi_krb5.so.*'),
    'libsyslog-ng': ('syslog-ng-core', 'syslog-ng-dbg', 'usr/lib/syslog-ng/libsyslog-ng-*.so.*'),
    'libbfd': ('libbinutils', 'libbinutils-dbg', 'usr/lib/x86_64-linux-gnu/libbfd-*-system.so'),
    'liblua': ('liblua5.4-0', 'liblua5.4-0-dbg', 'usr/lib/x86_64-linux-gnu/liblua5.4.so.*'),
    'dibbler-relay': ('dibbler-relay', 'dibbler-relay-dbg', 'usr/sbin/dibbler-relay'), 'sendfax':
    ('hylafax-client', 'hylafax-client-dbg',
     'usr/bin/sendfax'), 'libboolstuff': ('libboolstuff-0.1-0', 'libboolstuff-0.1-0-dbg',
                                          'usr/lib/x86_64-linux-gnu/libboolstuff-0.1.so.*'),
    'libopencsg': ('libopencsg1', 'libopencsg1-dbg', 'usr/lib/x86_64-linux-gnu/libopencsg.so.*'),
    'pdfcube': ('pdfcube', 'pdfcube-dbg',
                'usr/bin/pdfcube'), 'stretchplayer': ('stretchplayer', 'stretchplayer-dbg',
                                                      'usr/bin/stretchplayer'), 'structure-synth':
    ('structure-synth', 'structure-synth-dbg', 'usr/bin/structure-synth'), 'nam': ('nam', 'nam-dbg',
                                                                                   'usr/bin/nam'),
}
# Debug files of modules are whole modules: with code, and with relocations.
MODULES = {
    'module-6.1-nf_nat': ('x/linux-image-6.1*-dbg', 'nf_nat.ko'),
    'module-6.1-nf_conntrack': ('x/linux-image-6.1*-dbg', 'nf_conntrack.ko'),
    'module-6.1-virtio_net': ('x/linux-image-6.1*-dbg', 'virtio_net.ko'),
    'module-7.x-nf_nat': ('kernels/7.x/usr/lib/debug', 'nf_nat.ko'),
    'module-7.x-nf_tables': ('kernels/7.x/usr/lib/debug', 'nf_tables.ko'),
    'module-7.x-virtio_net': ('kernels/7.x/usr/lib/debug', 'virtio_net.ko'),
}
BUILT = {
    'lua-gcc': lambda: sources.lua('gcc'),
    'lua-clang': lambda: sources.lua('clang'),
    'sqlite-gcc': lambda: sources.sqlite('gcc'),
    'sqlite-clang': lambda: sources.sqlite('clang'),
    'redis-gcc': lambda: sources.redis('gcc'),
    'rust-regex': lambda: sources.rust_regex(('-O',)),
    'rust-regex-O0': lambda: sources.rust_regex(()),
}
TYPES_AT_ONCE, BINDS, DECODED, ADDRESSES, LINES_SHOWN = 40, 60, 25, 3000, 4


class Program:
    """@debug: options that name the debug information. @types_of: what layout, decode and bind
    read, None: they have no such option."""

    def __init__(self, name, path, debug=(), types_of=None, is_object=False):
        self.name, self.path, self.debug, self.types_of, self.is_object = name, path, list(
            debug), types_of, is_object
        self.sidecar = None


def of_package(name):
    package, debug_package, pattern = PACKAGES[name]
    root = sources.debian_files(package, debug_package)
    paths = [
        p for p in glob.glob(os.path.join(root, pattern))
        if os.path.isfile(p) and not os.path.islink(p)
    ]
    if not paths:
        raise sources.Unavailable(f'{package} has no {pattern}')
    _, notes, _ = common.run(['readelf', '-n', paths[0]])
    build_id = notes.split('Build ID: ')[1].split()[0] if 'Build ID: ' in notes else '0' * 40
    folder = os.path.join(root, 'usr/lib/debug')
    debug = os.path.join(folder, '.build-id', build_id[:2], build_id[2:] + '.debug')
    if not os.path.exists(debug):
        raise sources.Unavailable(f'{debug_package} is of another build than {package}')
    # What dwz shared out is found by --debug-dir only, which the verbs of types do not have.
    _, sections, _ = common.run(['readelf', '-SW', debug])
    return Program(name, paths[0], ['--debug-dir', folder],
                   None if 'gnu_debugaltlink' in sections else debug)


def of_module(name):
    where, file = MODULES[name]
    base = os.environ.get('CAIRN_LAB') or os.path.expanduser('~/.cache/cairn-lab')
    paths = [
        p for folder in glob.glob(os.path.join(base, where))
        for p in glob.glob(os.path.join(folder, '**', file), recursive=True)
    ]
    if not paths:
        raise sources.Unavailable('not among the inputs of the lab')
    return Program(name, paths[0], types_of=paths[0], is_object=True)


def program_of(name):
    if name in PACKAGES:
        return of_package(name)
    if name in MODULES:
        return of_module(name)
    path = BUILT[name]()
    return Program(name, path, types_of=path)


# ---- comparing ----

def without_sources(line):
    """The line of JSON that sums up names the file that the answer is from, and so does what bind
    writes."""
    if b'cairn bind of ' in line:
        return b'' if line.endswith(b'. Do not edit. */\n') else line
    if not line.startswith(b'{"summary"'):
        return line
    told = json.loads(line)
    for key in ('path', 'debug_path', 'sidecar'):
        told.pop(key, None)
    return json.dumps(told).encode()


class Comparison:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.bytes, self.differences, self.binds = {}, [], 0

    def differ(self, words, was, now):
        if len(self.differences) < LINES_SHOWN:
            text = (f'# {self.program.name}: {" ".join(words)}\n#   debug information: {was!r}\n'
                    f'#   sidecar:           {now!r}')
            print(text[:1500])
        self.differences.append(words)

    def lines(self, words, from_debug, from_sidecar, visit=None, text=b''):
        """Both commands at a time, line by line: outputs can be of 100 MB."""
        paths = [os.path.join(self.folder, n) for n in ('asked', 'errors.0', 'errors.1')]
        with open(paths[0], 'wb') as file:
            file.write(text)
        run = []
        for number, command in enumerate((from_debug, from_sidecar)):
            with open(paths[0], 'rb') as given, open(paths[1 + number], 'wb') as errors:
                run.append(
                    subprocess.Popen([common.CAIRN, *command], stdin=given, stdout=subprocess.PIPE,
                                     stderr=errors))
        same, size = True, 0
        for was, now in itertools.zip_longest(run[0].stdout, run[1].stdout):
            size += len(was or b'')
            if was != now and same and (was is None or now is None
                                        or without_sources(was) != without_sources(now)):
                same = False
                self.differ(words, was, now)
            if visit and was:
                visit(was)
        status = [p.wait() for p in run]
        if same and status[0] != status[1]:
            self.differ(words, f'status {status[0]}', f'status {status[1]}')
        self.bytes[words[0]] = self.bytes.get(words[0], 0) + size
        return status[0]

    def sites(self):
        addresses = []

        def collect(line):
            if line.startswith(b'{"function"'):
                addresses.append(json.loads(line)['addr'])

        p = self.program
        for more in ((), ('--json',), ('--sites',), ('--hazards',), ('--hazards', '--json'), ('*',),
                     ('*', '--json')):
            self.lines(('sites', *more), ('sites', p.path, *p.debug, '--no-sidecar', *more),
                       ('sites', p.path, '--sidecar', p.sidecar, *more),
                       collect if more == ('*', '--json') else None)
        return addresses

    def addr(self, addresses):
        p, draw = self.program, random.Random(1)
        asked = [
            int(a, 16) + draw.choice((0, 0, 1, 5, 17))
            for a in draw.sample(addresses, min(ADDRESSES, len(addresses)))
        ]
        text = ''.join(f'{a:#x}\n' for a in asked).encode()
        for more in ((), ('--json',), ('--return',)):
            self.lines(('addr', *more), ('addr', p.path, *p.debug, *more),
                       ('addr', p.path, '--sidecar', p.sidecar, *more), text=text)

    def types(self):
        p, names = self.program, {}

        def collect(line):
            told = json.loads(line)
            if told.get('name'):
                names[told['name']] = True

        for more in ((), ('--json',), ('--expand',), ('*',), ('*', '--json'), ('--sizes',),
                     ('--lint',)):
            self.lines(('layout', *more), ('layout', p.types_of, '--no-sidecar', *more),
                       ('layout', p.sidecar, *more), collect if more == ('*', '--json') else None)
        names = sorted(names)
        random.Random(3).shuffle(names)
        for more in (('--json',), ('--lang', 'c')):
            self.binds = BINDS
            for at in range(0, len(names), TYPES_AT_ONCE):
                self.bind(more, names[at:at + TYPES_AT_ONCE])
        draw, noise = random.Random(2), os.path.join(self.folder, 'noise')
        with open(noise, 'wb') as file:
            file.write(draw.randbytes(1 << 16))
        for name in draw.sample(names, min(DECODED, len(names))):
            for more in ((), ('--json',)):
                words = (name, noise, *more)
                self.lines(('decode', name, *more), ('decode', p.types_of, '--no-sidecar', *words),
                           ('decode', p.sidecar, *words))

    def bind(self, more, names):
        """One type that cannot be bound keeps the others from being shown: the rest is asked about
        in halves."""
        p = self.program
        if not self.binds:
            return
        self.binds -= 1
        status = self.lines(('bind', *more, *names[:1]),
                            ('bind', '--no-sidecar', *more, p.types_of, *names),
                            ('bind', *more, p.sidecar, *names))
        if status and len(names) > 1:
            self.bind(more, names[:len(names) // 2])
            self.bind(more, names[len(names) // 2:])

    def btf(self):
        p, told = self.program, []
        for words in ((p.path, *p.debug), (p.sidecar,)):
            out = os.path.join(self.folder, 'encoded')
            for path in (out, out + '.inline'):
                if os.path.exists(path):
                    os.remove(path)
            code, _, err = common.run([common.CAIRN, 'btf', 'encode', *words, '-o', out], 900)
            if code != 0:
                print(f'# {p.name}: btf encode: {err[-300:]}')
            contents = []
            for path in (out, out + '.inline'):
                contents.append(b'')
                if os.path.exists(path):
                    with open(path, 'rb') as file:
                        contents[-1] = file.read()
            told.append(contents)
        for number, what in enumerate(('.BTF', '.BTF.inline')):
            if told[0][number] != told[1][number] or not told[0][0]:
                self.differ(('btf', 'encode', what), len(told[0][number]), len(told[1][number]))
        self.bytes['btf encode'] = sum(map(len, told[0]))

    def unwind(self):
        p = self.program
        self.lines(('unwind', 'dump'), ('unwind', 'dump', p.path), ('unwind', 'dump', p.sidecar))

    def args(self):
        """Parameters in the middle of functions, as stack --args asks for them."""
        p = self.program
        build = os.environ.get('CAIRN_BUILD') or os.path.dirname(common.CAIRN)
        debug = p.types_of if p.debug else None
        stride = max(7, os.path.getsize(debug or p.path) // 20000) | 1
        code, out, err = common.run([
            os.path.join(build, 'tests', 'truth', 'args_from_sidecar'), p.path,
            str(stride), *([debug] if debug else [])
        ], 3600)
        if code != 0:
            self.differ(('stack', '--args'), (out + err)[-600:], '')
        return (out.splitlines() or ['nothing'])[-1]


def compare(name, folder):
    program = program_of(name)
    program.sidecar = os.path.join(folder, name + '.cairn')
    options = ['--btf-inline', *([] if program.is_object else ['--args'])]
    code, _, err = common.run(
        [common.CAIRN, 'sidecar', program.path, *program.debug, '-o', program.sidecar, *options],
        1800)
    if code != 0:
        print(f'# {name}: {err}')
        common.not_ok(f'sidecar_answers {name}')
        return
    c = Comparison(program, folder)
    c.addr(c.sites())
    if program.types_of:
        c.types()
    c.btf()
    if not program.is_object:
        c.unwind()
    asked = c.args() if program.types_of and not program.is_object else ''
    told = ', '.join(f'{verb} {size}' for verb, size in c.bytes.items())
    common.claim(
        f'sidecar_answers {name}: {len(c.differences)} differences in bytes of {told}{"; " if asked else ""}{asked}',
        not c.differences)
    os.remove(program.sidecar)


def main():
    names = sys.argv[1:] or [*PACKAGES, *MODULES, *BUILT]
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                compare(name, folder)
                compared += 1
            except sources.Unavailable as error:
                common.skip(f'sidecar_answers {name}', str(error))
    print(f'# {compared} of {len(names)} programs')
    return common.finish()


if __name__ == '__main__':
    main()
