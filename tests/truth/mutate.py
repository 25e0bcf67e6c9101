#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Real files, changed where their formats have structure, read by every verb of a build with
sanitizers.

    mutate.py [--seconds N] [--seed N] [--kind NAME]...

For N seconds (300) a file of one kind in turn gets one to three changes: fields of its headers,
sections that are exchanged or overlap, attributes and forms of its abbreviations, headers of its
units, line tables and call frames, records of its BTF, notes, compression headers, records of a
jitdump. A sidecar is sealed again, so that its checksums do not keep its readers from what was
changed. Fuzzers that change bytes at random seldom get that far; damage.py has those changes, and
analysis answers.

Each verb has to end by itself within 60 seconds, with a documented exit status, less than 2 GB of
memory, and no report of a sanitizer. A file that fails is kept in $CAIRN_LAB/truth/mutate/found,
and its command is printed.
"""
import argparse
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '../cli')]
import common  # noqa: E402
import mutations  # noqa: E402
from sidecars import seal  # noqa: E402

SECONDS, MEGABYTES, REPORTED = 60, 2048, 99
STATUSES = set(range(7))

C = '''
#include <stdlib.h>
struct node { struct node *next; int x, y; const char *name; union { long l; double d; } u; unsigned bits : 5; };
enum color { RED, GREEN = 7, BLUE }; typedef struct { short lo, hi; char tag[4]; } pair; volatile int sink; int counter[8];
static inline int add(struct node *n, int right) { sink = n->x; return n->y + right; }
__attribute__((noinline)) int walk(struct node *n, enum color c, pair *p) { int s = p->lo; for (; n; n = n->next) s += add(n, c); return s; }
int pick(int n, struct node *l) { switch (n) { case 0: return 7; case 1: return walk(l, RED, 0); case 2: return sink; case 3: return n * 7;
  case 4: return add(l, n); case 5: return counter[n]; } return n; }
int main(int argc, char **argv) { struct node a = {0, argc, 3, argv[0]}; pair p = {1, 2, "ab"}; if (argc == 77) abort(); return walk(&a, GREEN, &p) + pick(argc, &a); }
'''
CPP = '''
#include <string>
#include <vector>
namespace ns { struct base { virtual ~base() {} int b; }; template <class T> struct box : base { T value; std::vector<T> all; T get(std::string s) { return all.at(s.size()); } }; }
int run(ns::box<int> *b, std::string_view s, const std::string &t) { return b->get(t) + (int)s.size(); }
int main(int argc, char **argv) { ns::box<int> b; b.all.push_back(argc); return run(&b, argv[0], ""); }
'''
RUST = '''
pub struct Job<'a> { id: u64, name: &'a str, kind: Kind, rest: Vec<u8> }
pub enum Kind { None, One(u32), Two { a: i64, b: bool } }
#[inline(never)] pub fn work(j: &Job, n: usize) -> usize { match j.kind { Kind::None => n, Kind::One(k) => k as usize + j.rest.len(), Kind::Two { a, b } => (a + b as i64) as usize } }
'''
GO = '''package main
import "os"
type job struct { id int; name string; all []byte }
//go:noinline
func work(j *job, n int) int { return j.id + len(j.name) + len(j.all) + n }
func main() { j := job{1, "x", nil}; os.Exit(work(&j, len(os.Args))) }
'''
ADA = '''procedure Main is
   type Rec (N : Natural) is record S : String (1 .. N); K : Integer; end record;
   R : Rec (3) := (3, "abc", 4);
   procedure Work (X : in out Rec) is begin X.K := X.K + X.N; end Work;
begin Work (R); end Main;
'''
BPF = '''struct event { int pid; char comm[16]; long long t; }; enum kind { A, B };
struct { int (*type)[1]; int *key; struct event *value; } map __attribute__((section(".maps"), used));
int counter; const volatile enum kind mode = B;
__attribute__((section("tc"), used)) int prog(struct event *e) { counter += e->pid; return mode; } char _license[] __attribute__((section("license"))) = "GPL";
'''
# What a JIT would make: one function, of which the file of a kind tells, and a process that waits
# in it.
JIT = 'int step(int (*wait)(void), int n) { return wait() + n; }'
JIT_AT, JIT_SIZE, JIT_FILE = 0x10000000, 64, 'jit-1.dump'
HOST = '''
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
struct entry { struct entry *next, *prev; void *file; unsigned long size; } entry;
struct { unsigned version, action; struct entry *relevant, *first; } __jit_debug_descriptor = {1, 0, 0, 0};
void __jit_debug_register_code(void) {}
static int wait(void) { for (;;) pause(); }
int main(int argc, char **argv) {
  struct stat st; int text = open(argv[1], O_RDONLY), fd = open(argv[2], O_RDONLY), is_dump = !strcmp(argv[3], "dump");
  int (*step)(int (*)(void), int) = mmap((void *)0x10000000, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (fstat(fd, &st) || read(text, step, 64) <= 0) return 1;
  entry.file = mmap(0, entry.size = st.st_size, PROT_READ | (is_dump ? PROT_EXEC : 0), MAP_SHARED, fd, 0);
  if (!is_dump) __jit_debug_descriptor.first = &entry;
  if (write(1, "ready", 5) != 5) return 1;
  return step(wait, argc);
}
'''

LINK = '-Wl,--build-id=sha1 -o $F a.c'
# @eh_frame: where .eh_frame counts from. A dump has it at the end of the code; GDB's symbol file
# where nothing is mapped, so that the file's bytes are read.
MAKE_JIT = (
    'gcc -g -O2 -c -o j.o j.c && ld -e step -Ttext=0x{at:x} --section-start=.eh_frame=0x{eh_frame:x} -o j.elf j.o && '
    'objcopy -O binary -j .text j.elf text && objcopy -O binary -j .eh_frame j.elf eh && '
    'gcc -w -O2 -static -o host host.c && ')
# What makes the file $F of each kind, from a.c and the like; the files beside it that its readers
# open, too.
KINDS = {
    'gcc-O2-dwarf5': f'gcc -w -g -O2 {LINK}', 'gcc-O0-dwarf4': f'gcc -w -g -gdwarf-4 -O0 {LINK}',
    'gcc-object': 'gcc -w -g -O2 -c -o $F a.c', 'gcc-type-units':
    'g++ -w -g -O1 -std=c++17 -fdebug-types-section -o $F a.cc', 'clang-O2':
    f'clang -w -g -O2 -fuse-ld=bfd {LINK}', 'clang-cpp-object':
    'clang++ -w -g -O1 -std=c++17 -c -o $F a.cc', 'split-dwarf5':
    f'gcc -w -g -gsplit-dwarf -O2 -c -o a.o a.c && gcc -g -gsplit-dwarf {LINK.replace("a.c", "a.o")}',
    'dwo': 'gcc -w -g -gsplit-dwarf -gdwarf-4 -O2 -c -o a.o a.c && mv a.dwo $F', 'dwz':
    f'gcc -w -g -O2 {LINK} && dwz $F', 'compressed': f'gcc -w -g -gz -O2 {LINK}', 'stripped':
    f'gcc -w -O2 {LINK} && strip $F', 'rust': 'rustc -g -O --crate-type=lib --emit=obj -o $F a.rs',
    'go': 'go build -o $F a.go', 'ada': 'gnatmake -q -g main.adb && mv main $F', 'bpf':
    'clang -w -g -O2 -target bpf -c -o $F b.c', 'btf':
    'gcc -w -g -O2 -o a.out a.c && $CAIRN btf encode -o $F a.out', 'sidecar':
    'gcc -w -g -O2 -Wl,--build-id=sha1 -o a.out a.c && $CAIRN pack a.out --lines -o $F',
    'sidecar-btf': 'gcc -w -g -O2 -Wl,--build-id=sha1 -o a.out a.c && $CAIRN pack '
    'a.out --btf-inline -o $F', 'sidecar-args':
    'gcc -w -g -O2 -Wl,--build-id=sha1 -o a.out a.c && $CAIRN '
    'pack a.out --args -o $F', 'core':
    'gcc -w -g -O2 -Wl,--build-id=sha1 -o a.out a.c && gdb -q -batch -ex "break walk" -ex '
    'run -ex "generate-core-file $F" ./a.out', 'jitdump': MAKE_JIT.format(
        at=JIT_AT, eh_frame=JIT_AT + JIT_SIZE) + '$PYTHON $MUTATE --write-jitdump eh $F',
    'gdb-list': MAKE_JIT.format(at=JIT_AT, eh_frame=JIT_AT + 0x10000) + 'mv j.elf $F',
}
# Of these a process is read that has mapped the file; a dump is known by its name.
LIVE = {'jitdump': 'dump', 'gdb-list': 'list'}
# More than this takes too long with sanitizers; a Go program is about 2 MB.
FILE_MAX = 4 << 20

OF_CODE = [['sites', '{f}'], ['sites', '{f}', 'add', 'walk', '--json'],
           ['sites', '{f}', '*', '--no-sidecar'], ['sites', '--hazards', '{f}'],
           ['addr', '{f}', '0x1000', '0x1139', '0x401136', '0x11a0'], ['layout', '{f}', 'node'],
           ['layout', '{f}', '--lint'], ['btf', 'encode', '-o', '{o}', '{f}'],
           ['unwind', 'dump', '{f}'], ['unwind', 'check', '{f}'],
           ['unwind', 'encode', '-o', '{o}', '{f}'], ['sidecar', '{f}', '-o', '{o}'],
           ['sidecar', '--lines', '{f}', '-o', '{o}'], ['bind', '{f}', 'node', '--lang', 'rust'],
           ['trace', '--dry-run', '-c', '{f}', 'walk(n->x, *p)'],
           ['sites', '{f}', 'walk', '--emit', 'gdb'], ['stack', '{f}']]
OF_BTF = [['btf', 'check', '{f}'], ['btf', 'dump', '{f}'], ['layout', '{f}', 'node'],
          ['layout', '{f}', 'event'], ['btf', 'convert', '-o', '{o}', '{f}'],
          ['decode', '{f}', 'node', '/dev/null'], ['bind', '{f}', 'event', '--lang', 'go']]
OF_SIDECAR = [['sidecar', '--check', '{f}'], ['addr', '{f}', '0x1000', '0x1139', '0x11a0'],
              ['sites', '{f}', 'walk', '--json'], ['layout', '{f}', 'node'],
              ['unwind', 'dump', '{f}'], ['btf', 'dump', '{f}'], ['sites', '{f}', '*']]
OF_CORE = [['stack', '{f}'], ['stack', '{f}', '--args'], ['stack', '{f}', '--json'],
           ['code', '{f}']]
OF_PROCESS = [['stack', '{p}'], ['stack', '{p}', '--args'], ['stack', '{p}', '--json'],
              ['code', '{p}'], ['code', '{p}', '--json']]


def verbs_of(kind):
    if kind.startswith('sidecar'):
        return OF_SIDECAR
    if kind in LIVE:
        return OF_PROCESS
    return {'core': OF_CORE, 'btf': OF_BTF, 'bpf': OF_BTF + OF_CODE}.get(kind, OF_CODE)


def source_of(build):
    """The sources that a folder was set up for; None: none."""
    try:
        with open(os.path.join(build, 'meson-info', 'meson-info.json'), encoding='utf-8') as file:
            return json.load(file)['directories']['source']
    except (OSError, ValueError, KeyError):
        return None


def sanitized():
    """The program built with sanitizers: CAIRN_SANITIZED, or one that is built and kept in the lab.
    """
    given = os.environ.get('CAIRN_SANITIZED')
    if given:
        return given
    build = os.path.join(common.lab('mutate'), 'build')
    if source_of(build) != common.TOP:
        # Of another clone, which may be gone.
        shutil.rmtree(build, ignore_errors=True)
        code, _, err = common.run([
            'meson', 'setup', build, common.TOP, '-Db_sanitize=address,undefined',
            '-Db_lundef=false'
        ], 300)
        if code:
            raise RuntimeError(f'meson: {err[-1000:]}')
    code, out, _ = common.run(['ninja', '-C', build, 'cairn'], 3000)
    if code:
        raise RuntimeError(f'ninja: {out[-1000:]}')
    return os.path.join(build, 'cairn')


def jitdump(eh):
    """A dump of a JIT with two functions at one site one after the other, and one that moved; @eh:
    of the newest."""
    def record(number, body):
        return struct.pack('<IIQ', number, 16 + len(body), 1) + body

    def load(at, number, name):
        return record(
            0,
            struct.pack('<IIQQQQ', 1, 1, at, at, JIT_SIZE, number) + name + b'\0'
            + b'\xcc' * JIT_SIZE)

    def lines(at):
        entries = ((at, 3, b'a.js'), (at + 4, 4, b'\xff'), (at + 9, 5, b'b.js'))
        return record(
            2,
            struct.pack('<QQ', at, len(entries)) + b''.join(
                struct.pack('<QII', a, n, 0) + f + b'\0' for a, n, f in entries))
    header = struct.pack('<IIIIIIQQ', 0x4a695444, 1, 40, 62, 0, 1, 0, 0)
    unwinding = record(
        4,
        struct.pack('<QQQ',
                    len(eh) + 20, 20,
                    len(eh) + 20) + eh + b'\1\x1b\3\x3b' + bytes(16))
    by_frame_pointer = record(4, struct.pack('<QQQ', 20, 20, 0) + b'\1\x1b\3\x3b' + bytes(16))
    return (header + load(JIT_AT, 1, b'old') + by_frame_pointer + load(
        JIT_AT + 0x100, 2, b'other') + record(
            1,
            struct.pack('<IIQQQQQ', 1, 1, JIT_AT + 0x200, JIT_AT + 0x100, JIT_AT + 0x200, JIT_SIZE,
                        2)) + lines(JIT_AT) + unwinding + load(JIT_AT, 3, b'step') + record(3, b''))


class Host:
    """The process that has mapped the file of a kind, and waits in the function that it tells of.
    """

    def __init__(self, path, name, kind):
        self.process = subprocess.Popen(
            [os.path.join(path, 'host'),
             os.path.join(path, 'text'), name, LIVE[kind]], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE)
        self.is_ready = self.process.stdout.read(5) == b'ready'
        self.pid = str(self.process.pid)

    def end(self):
        self.process.kill()
        self.process.communicate()


def name_of(kind):
    return JIT_FILE if kind == 'jitdump' else 'file'


def make(kind, folder):
    """The file of a kind; None, and it is skipped, when its tool is missing or does not work."""
    path = os.path.join(folder, kind)
    os.makedirs(path)
    for name, text in (('a.c', C), ('a.cc', CPP), ('a.rs', RUST), ('a.go', GO), ('main.adb', ADA),
                       ('b.c', BPF), ('j.c', JIT), ('host.c', HOST)):
        with open(os.path.join(path, name), 'w', encoding='utf-8') as file:
            file.write(text)
    made = os.path.join(path, name_of(kind))
    env = dict(os.environ, F=made, CAIRN=common.CAIRN, PYTHON=sys.executable,
               MUTATE=os.path.abspath(__file__), GOFLAGS='-mod=mod', GO111MODULE='off')
    code, _, err = common.run(['sh', '-c', KINDS[kind]], 300, cwd=path, env=env)
    if code != 0 or not os.path.exists(made) or os.path.getsize(made) > FILE_MAX:
        common.skip(f'mutants of {kind}', (err.strip().splitlines()
                                           or ['it was not made, or is too large'])[-1][:100])
        return None
    with open(made, 'rb') as file:
        return path, file.read()


def mutant(kind, data, how):
    data, told = bytearray(data), []
    for _ in range(how.choice((1, 1, 2, 3))):
        told.append(mutations.change(data, how))
    return seal(data) if kind.startswith('sidecar') else bytes(data), told


def judge(code, err):
    """What is wrong with how a verb ended; None: nothing."""
    if code is None:
        return f'more than {SECONDS} seconds'
    if code == REPORTED or 'runtime error' in err or 'rss limit' in err:
        return 'a report of a sanitizer'
    return None if code in STATUSES else f'status {code}'


class Run:
    def __init__(self, program, folder, how):
        self.program, self.folder, self.how = program, folder, how
        self.counts, self.failures, self.hosts = {}, [], {}
        self.env = dict(
            os.environ, CAIRN_CACHE='off', CAIRN_SYSROOT='', DEBUGINFOD_URLS='', ASAN_OPTIONS=
            f'exitcode={REPORTED}:hard_rss_limit_mb={MEGABYTES}:detect_leaks=1:allocator_may_return_null=1',
            UBSAN_OPTIONS=f'halt_on_error=1:exitcode={REPORTED}:print_stacktrace=1')

    def start(self, kind, path):
        """Its process, which has to be read as the file says before the file is changed."""
        if kind not in LIVE:
            return
        self.hosts[kind] = host = Host(path, os.path.join(path, name_of(kind)), kind)
        code, out, err = common.run([self.program, 'stack', host.pid], SECONDS, env=self.env)
        common.claim(f'the function of a JIT is found by its {kind}', host.is_ready and code == 0
                     and 'step' in out and 'main' in out)
        if code != 0 or 'step' not in out:
            print(out + err)

    def ask(self, kind, path, whole):
        data, told = mutant(kind, whole, self.how)
        name, out = os.path.join(path, name_of(kind)), os.path.join(path, 'out')
        # In site: a process may have mapped it.
        with open(name, 'r+b') as file:
            file.write(data)
        pid = self.hosts[kind].pid if kind in self.hosts else ''
        os.chmod(name, 0o755)
        for words in self.how.sample(verbs_of(kind), 2):
            command = [
                w.replace('{f}', name).replace('{o}', out).replace('{p}', pid) for w in words
            ]
            code, _, err = common.run([self.program, *command], SECONDS, env=self.env)
            wrong = judge(code, err)
            self.counts[kind] = self.counts.get(kind, 0) + 1
            if wrong:
                self.keep(kind, name, words, told, wrong, err)

    def keep(self, kind, name, words, told, wrong, err):
        found = common.lab('mutate', 'found')
        kept = os.path.join(found, f'{kind}-{len(self.failures)}-{os.getpid()}')
        shutil.copy(name, kept)
        self.failures.append(kind)
        print(
            f'{wrong}: cairn {" ".join(words).replace("{f}", kept)} ({"; ".join(told)})\n{err[:3000]}',
            flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=int, default=300)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--kind', action='append', choices=sorted(KINDS))
    parser.add_argument('--write-jitdump', nargs=2, metavar=('EH', 'FILE'), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write_jitdump:
        with open(args.write_jitdump[0], 'rb') as eh, open(args.write_jitdump[1], 'wb') as file:
            file.write(jitdump(eh.read()))
        return
    program = sanitized()
    with tempfile.TemporaryDirectory(prefix='cairn-mutate-') as folder:
        files = {kind: made for kind in args.kind or KINDS if (made := make(kind, folder))}
        run = Run(program, folder, random.Random(args.seed))
        until = time.monotonic() + args.seconds
        for kind, (path, _) in files.items():
            run.start(kind, path)
        while files and time.monotonic() < until:
            for kind, (path, whole) in files.items():
                run.ask(kind, path, whole)
        for host in run.hosts.values():
            host.end()
    for kind in files:
        common.claim(f'{run.counts.get(kind, 0)} verbs read mutants of {kind}',
                     run.counts.get(kind) and kind not in run.failures)
    common.finish()


if __name__ == '__main__':
    main()
