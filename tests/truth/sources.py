# SPDX-License-Identifier: BSD-2-Clause
"""Real programs built from Debian's sources, kept in the lab's folder: SQLite's shell, Lua, Redis,
postgres.

The sources come through apt, from where the machine gets its packages, with a configuration of its
own in a temporary folder; the machine's lists and configuration stay as they are. Every function
returns a path, or raises Unavailable with the reason.
"""
import glob
import os
import shutil
import subprocess
import tempfile

import common


class Unavailable(Exception):
    pass


def source_lists():
    """Lines of a sources.list for the sources of what the machine has packages of."""
    _, out, _ = common.run([
        'apt-get', 'indextargets', '--format', '$(REPO_URI) $(CODENAME) $(COMPONENT)',
        'Created-By: Packages'
    ])
    return ''.join(
        f'deb-src {line}\n' for line in sorted(set(out.splitlines())) if len(line.split()) == 3)


def versions(package, options):
    """The versions of a source package that apt's lists name, newest first."""
    _, out, _ = common.run(['apt-cache', *options, 'madison', package])
    lines = [line.split('|') for line in out.splitlines()]
    return [
        fields[1].strip() for fields in lines if len(fields) == 3 and fields[2].endswith(' Sources')
    ]


def apt_source(package, folder):
    """Downloads the upstream archive of a source package into folder: of the newest version that
    the mirror has. Its lists may be newer than its files."""
    if not shutil.which('apt-get'):
        raise Unavailable('apt-get is not installed')
    with tempfile.TemporaryDirectory() as apt:
        os.makedirs(os.path.join(apt, 'lists', 'partial'))
        os.makedirs(os.path.join(apt, 'cache', 'archives', 'partial'))
        with open(os.path.join(apt, 'sources.list'), 'w', encoding='ascii') as file:
            file.write(source_lists())
        options = [
            '-q', '-o', f'Dir::Etc::sourcelist={apt}/sources.list', '-o',
            'Dir::Etc::sourceparts=/nonexistent', '-o', f'Dir::State::lists={apt}/lists', '-o',
            f'Dir::Cache={apt}/cache', '-o', 'APT::Sandbox::User=root'
        ]
        code, out, err = common.run(['apt-get', *options, 'update'], 300)
        if code != 0:
            raise Unavailable(f'apt-get update: {(err or out).strip()[-200:]}')
        failed = f'apt knows no source of {package}'
        for version in versions(package, options):
            get = ['source', '--download-only', '--tar-only', f'{package}={version}']
            code, out, err = common.run(['apt-get', *options, *get], 300, cwd=folder)
            if code == 0:
                return
            failed = f'apt-get {" ".join(get)}: {(err or out).strip()[-200:]}'
        raise Unavailable(failed)


def debian_files(*packages):
    """A folder with the files of binary packages, of which nothing is installed."""
    folder = common.lab('deb', packages[0])
    root = os.path.join(folder, 'root')
    if os.path.exists(os.path.join(folder, '.done')):
        return root
    if not shutil.which('apt-get') or not shutil.which('dpkg-deb'):
        raise Unavailable('apt-get or dpkg-deb is not installed')
    for package in packages:
        code, out, err = common.run(
            ['apt-get', 'download', '-q', '-o', 'APT::Sandbox::User=root', package], 600,
            cwd=folder)
        if code != 0:
            raise Unavailable(f'apt-get download {package}: {(err or out).strip()[-200:]}')
    for deb in glob.glob(os.path.join(folder, '*.deb')):
        code, _, err = common.run(['dpkg-deb', '-x', deb, root], 300)
        if code != 0:
            raise Unavailable(f'dpkg-deb -x {deb}: {err[-200:]}')
        os.remove(deb)
    with open(os.path.join(folder, '.done'), 'w', encoding='ascii'):
        return root


def unpacked(package):
    """The unpacked upstream source of a Debian package."""
    folder = common.lab('src', package)
    trees = [p for p in glob.glob(os.path.join(folder, 'tree', '*')) if os.path.isdir(p)]
    if trees:
        return trees[0]
    apt_source(package, folder)
    tars = [p for p in glob.glob(os.path.join(folder, '*.orig.tar.*')) if not p.endswith('.asc')]
    if not tars:
        raise Unavailable(f'{package}: no upstream archive was downloaded')
    temporary = os.path.join(folder, 'tree.tmp')
    shutil.rmtree(temporary, ignore_errors=True)
    os.makedirs(temporary)
    code, _, err = common.run(['tar', '-xf', tars[0], '-C', temporary], 300)
    if code != 0:
        raise Unavailable(f'tar {tars[0]}: {err[-200:]}')
    os.rename(temporary, os.path.join(folder, 'tree'))
    return unpacked(package)


def shell(command, cwd, log, timeout=1800):
    with open(log, 'w', encoding='utf-8') as file:
        done = subprocess.run(['/bin/sh', '-c', command], cwd=cwd, stdin=subprocess.DEVNULL,
                              stdout=file, stderr=file, check=False, timeout=timeout)
    if done.returncode != 0:
        with open(log, encoding='utf-8', errors='replace') as file:
            raise Unavailable(f'{command}: {file.read()[-300:]}')


def lua(compiler):
    tree = unpacked('lua5.4')
    output = os.path.join(common.lab('bin'), f'lua.{compiler}')
    if not os.path.exists(output):
        sources = [
            p for p in sorted(glob.glob(os.path.join(tree, 'src', '*.c')))
            if not p.endswith('/luac.c')
        ]
        try:
            common.compile_c(sources + ['-lm'], output, ['-O2', '-g', '-w', '-DLUA_COMPAT_5_3'],
                             compiler, 600)
        except RuntimeError as error:
            raise Unavailable(str(error)) from error
    return output


def sqlite(compiler):
    """The shell from the amalgamation, which needs tclsh to be made."""
    tree = unpacked('sqlite3')
    amalgamation = os.path.join(common.lab('src', 'sqlite3'), 'made')
    if not os.path.exists(os.path.join(amalgamation, 'sqlite3.c')):
        if not shutil.which('tclsh'):
            raise Unavailable('tclsh is not installed')
        shutil.rmtree(amalgamation, ignore_errors=True)
        os.makedirs(amalgamation)
        shell(f'{tree}/configure --disable-tcl --disable-readline && make sqlite3.c shell.c',
              amalgamation, os.path.join(amalgamation, 'log'))
    output = os.path.join(common.lab('bin'), f'sqlite.{compiler}')
    if not os.path.exists(output):
        try:
            common.compile_c([
                os.path.join(amalgamation, 'shell.c'),
                os.path.join(amalgamation, 'sqlite3.c'), '-lm', '-ldl', '-lpthread'
            ], output, ['-O2', '-g', '-w'], compiler, 900)
        except RuntimeError as error:
            raise Unavailable(str(error)) from error
    return output


def redis(compiler):
    """The server with its own tests in it, which run without a client."""
    output = os.path.join(common.lab('bin'), f'redis.{compiler}')
    if os.path.exists(output):
        return output
    tree, build = unpacked('redis'), os.path.join(common.lab('src', 'redis'), f'build.{compiler}')
    shutil.rmtree(build, ignore_errors=True)
    shutil.copytree(tree, build, symlinks=True)
    shell(
        f'nice make -j{os.cpu_count() or 1} -C src redis-server CC={compiler} MALLOC=libc OPTIMIZATION=-O2 '
        'REDIS_CFLAGS="-DREDIS_TEST -w" USE_SYSTEMD=no BUILD_TLS=no', build,
        os.path.join(build, 'log'))
    shutil.copy(os.path.join(build, 'src', 'redis-server'), output)
    return output


RUST_MAIN = """\
use regex::{Regex, RegexSet};
use std::io::Read;
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let set = RegexSet::new(&words).unwrap();
    for line in text.lines().filter(|l| set.is_match(l)) {
        for word in &words {
            let found = Regex::new(word).unwrap();
            println!("{} {:?}", word, found.captures(line).map(|c| c.len()));
        }
    }
}
"""


def rust_regex(flags):
    """A program around the crate regex, of Debian's packages of its sources, by rustc alone."""
    output = os.path.join(common.lab('bin'), 'rust-regex' + ''.join(flags))
    if os.path.exists(output):
        return output
    if not shutil.which('rustc'):
        raise Unavailable('rustc is not installed')
    crates = {
        'memchr': (), 'aho_corasick': ('memchr',), 'regex_syntax': (), 'regex':
        ('memchr', 'aho_corasick', 'regex_syntax')
    }
    features = [
        'std', 'default', 'perf', 'perf-cache', 'perf-dfa', 'perf-inline', 'perf-literal',
        'unicode', 'unicode-perl', 'unicode-case', 'unicode-age', 'unicode-bool', 'unicode-gencat',
        'unicode-script', 'unicode-segment'
    ]
    root = debian_files(*(f'librust-{name.replace("_", "-")}-dev' for name in reversed(crates)))
    with tempfile.TemporaryDirectory() as folder:
        main = os.path.join(folder, 'main.rs')
        with open(main, 'w', encoding='ascii') as file:
            file.write(RUST_MAIN)
        for name, needed in [*crates.items(), ('main', ('regex',))]:
            found = glob.glob(
                os.path.join(root, 'usr/share/cargo/registry',
                             name.replace('_', '-') + '-[0-9]*', 'src/lib.rs'))
            if name != 'main' and not found:
                raise Unavailable(f'no source of the crate {name}')
            words = [main, '-o', output + '.tmp'] if name == 'main' else [
                found[0], '--crate-type', 'rlib', '--out-dir', folder
            ]
            words += [f'--extern={n}={folder}/lib{n}.rlib'
                      for n in needed] + [f'--cfg=feature="{f}"' for f in features]
            code, _, err = common.run([
                'rustc', '--edition=2018', '--crate-name', name, '-g', '--cap-lints=allow', '-L',
                folder, '-C', 'link-arg=-Wl,--build-id', *flags, *words
            ], 900)
            if code != 0:
                raise Unavailable(f'rustc {name}: {err[-300:]}')
        os.replace(output + '.tmp', output)
    return output


def built(name, package, command, made):
    """A program of a package's unpacked source, built by a shell command in a copy of it."""
    output = os.path.join(common.lab('bin'), name)
    if os.path.exists(output):
        return output
    tree, build = unpacked(package), os.path.join(common.lab('src', package), 'build')
    shutil.rmtree(build, ignore_errors=True)
    shutil.copytree(tree, build, symlinks=True)
    jobs = os.cpu_count() or 1
    shell(command.format(jobs=jobs), build, os.path.join(build, 'log'))
    shutil.copy(os.path.join(build, made), output)
    return output


def nginx():
    """The server without the modules that need libraries."""
    return built(
        'nginx', 'nginx', './configure --with-cc-opt="-O2 -g" --without-http_rewrite_module '
        '--without-pcre --without-http_gzip_module && nice make -j{jobs}', 'objs/nginx')


def git():
    return built(
        'git', 'git', 'nice make -j{jobs} git CFLAGS="-O2 -g" NO_CURL=1 NO_EXPAT=1 NO_GETTEXT=1 '
        'NO_TCLTK=1 NO_PERL=1 NO_PYTHON=1 NO_OPENSSL=1', 'git')


def zstd():
    return built(
        'zstd', 'libzstd', 'nice make -j{jobs} -C programs zstd MOREFLAGS=-g HAVE_LZMA=0 '
        'HAVE_LZ4=0 HAVE_ZLIB=0', 'programs/zstd')


def ninja():
    """In C++."""
    return built(
        'ninja', 'ninja-build', 'set -e; for f in $(ls src/*.cc | grep -vE "test|perf|win32|bench|browse|[.]in[.]"); '
        'do nice g++ -O2 -g -c -o $f.o $f; done; g++ -g -o ninja src/*.o', 'ninja')


def postgres():
    """The server of postgres 15, built by GCC at -O2 -g: ten minutes, once."""
    output = os.path.join(common.lab('bin'), 'postgres')
    if os.path.exists(output):
        return output
    tree = unpacked('postgresql-15')
    build = os.path.join(common.lab('src', 'postgresql-15'), 'build')
    os.makedirs(build, exist_ok=True)
    jobs = os.cpu_count() or 1
    shell(
        f'{tree}/configure --without-readline --without-zlib CFLAGS="-O2 -g" && make -s -C src/backend generated-headers && nice make -s -j{jobs} -C src/backend',
        build, os.path.join(build, 'log'), 3600)
    shutil.copy(os.path.join(build, 'src', 'backend', 'postgres'), output)
    return output
