#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Variables of files, functions and libraries in expressions of cairn trace, against the log of the
program that has them."""

import collections
import json
import os

from claims import (cairn, claim, claim_each, claim_each_of_many, expect, folder, main, need, run,
                    write)
from tracing import trace

LIBRARY = r"""
#include <stdio.h>
int lib_copied = 5, lib_own = 7;
static int counter = 1000;
static volatile int sink;
__attribute__((noinline, noclone)) void lib_probed(int n)
{
	sink = n;
	__asm__ volatile("" : : "r"(n) : "memory");
}
void lib_step(FILE *out, int n)
{
	lib_copied += n;
	lib_own += 2 * n;
	counter--;
	fprintf(out, "lib %d %d %d %d\n", n, lib_copied, lib_own, counter);
	lib_probed(n);
}
"""
HEADER = r"""
#include <stdio.h>
struct client { long id; char name[16]; struct client *next; };
struct server { struct client *clients; int n; struct client first; int table[4]; double load; };
extern struct server server;
extern int level, lib_copied;
extern FILE *out;
static volatile int of_header;
void b_step(int n);
void lib_step(FILE *out, int n);
"""
MAIN = r"""
#include "globals.h"
#include <stdlib.h>
struct server server;
int level = 3;
static int counter = 10;
static const char *mode = "fast";
static signed char small = -3;
static volatile int sink;
FILE *out;
__attribute__((noinline, noclone)) void probed(int n)
{
	sink = n;
	__asm__ volatile("" : : "r"(n) : "memory");
}
__attribute__((noinline, noclone)) void counted(int n)
{
	static int calls = 100;
	calls += n;
	__asm__ volatile("" : : "r"(n) : "memory");
	fprintf(out, "calls %d %d\n", n, calls);
}
static inline __attribute__((always_inline)) void copied(int n)
{
	sink += n;
	__asm__ volatile("" : : "r"(n) : "memory");
}
int main(int argc, char **argv)
{
	static struct client one = {1, "one", 0}, two = {2, "two", &one};
	int base = atoi(argv[2]);
	out = fopen(argv[1], "w");
	for (int n = base; n < base + 40; n++) {
		server.clients = n & 1 ? &one : &two;
		server.n = n * 3;
		server.first.id = -n;
		server.table[n & 3] = n;
		server.load = n / 2.0;
		counter += n;
		small++;
		of_header += 2;
		mode = n % 3 ? "fast" : "slow";
		level = n / 4;
		__asm__ volatile("" : : : "memory");
		fprintf(out, "main %d %s %d %ld %d %d %s %d %d\n", n, server.clients->name, server.n,
			server.first.id, server.table[n & 3], counter, mode, small, level);
		probed(n);
		counted(n);
		fprintf(out, "copied %d %d\n", level, level * 3 + server.table[1]);
		copied(n);
		b_step(n);
		lib_step(out, n + lib_copied % 2);
	}
	fclose(out);
	return of_header == 80 ? 0 : 1;
}
"""
OTHER = r"""
#include "globals.h"
static int counter = 77;
static volatile int sink;
__attribute__((noinline, noclone)) static void b_probed(int n)
{
	sink = n;
	__asm__ volatile("" : : "r"(n) : "memory");
}
void b_step(int n)
{
	counter += 5;
	of_header = n;
	__asm__ volatile("" : : : "memory");
	fprintf(out, "b %d %d\n", n, counter);
	b_probed(n);
}
"""
BUILDS = ("gcc -O2", "gcc -O0 -no-pie -gdwarf-4", "gcc -O1 -gsplit-dwarf", "clang -O2")


def program(build="gcc -O2"):
    compiler, *flags = build.split()
    at = os.path.join(folder(), "globals" + "".join(build.split()).replace("-", "_"))
    if os.path.exists(at):
        return at
    os.makedirs(at + ".d")
    for name, text in (("lib.c", LIBRARY), ("globals.h", HEADER), ("main.c", MAIN), ("other-file.c",
                                                                                     OTHER)):
        write(os.path.join(at + ".d", name), text)
    common = [need(compiler), "-g", *flags]
    lib = at + ".d/libglobals.so"
    run(*common, "-fPIC", "-shared", "-o", lib, "lib.c", cwd=at + ".d", check=True)
    run(*common,
        "-o",
        at,
        "main.c",
        "other-file.c",
        lib,
        "-Wl,-rpath," + at + ".d",
        cwd=at + ".d",
        check=True)
    return at


def library(build="gcc -O2"):
    return program(build) + ".d/libglobals.so"


def traced(command, *words):
    out = os.path.join(folder(), "events")
    r = trace("--json", "-o", out, "-c", command, *words)
    expect(r.status == 0, r)
    with open(out, encoding="utf-8") as file:
        *events, summary = map(json.loads, file)
    expect(all(p["lost"] == 0 and p["undecided"] == 0 for p in summary["probes"]), summary)
    return events


def logged(path, name):
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return [words[1:] for words in lines if words[0] == name]


def log_path(i=0):
    return os.path.join(folder(), f"log{i}")


def shown(value):
    return str(value["string"] if isinstance(value, dict) and "string" in value else value)


def of(events, function):
    return [[shown(v) for v in e["args"].values()] for e in events if e["function"] == function]


PROBES = (("main", "probed", "n, server.clients->name, server.n, server.first.id, "
           "server.table[n & 3], counter, mode, small, level"),
          ("copied", "copied", "level, level * 3 + server.table[1]"), ("b", "b_probed",
                                                                       "n, counter"))


@claim_each_of_many(*BUILDS)
def values_are_those_that_the_program_logs(build):
    path = program(build)
    lib = library(build)
    events = traced(f"{path} {log_path()} 0",
                    *(f"{path}:{function}({values})" for _, function, values in PROBES),
                    f"{lib}:lib_probed(n, lib_copied, lib_own, counter)")
    for name, function, _ in (*PROBES, ("lib", "lib_probed", "")):
        wanted = logged(log_path(), name)
        expect(
            len(wanted) == 40 and of(events, function) == wanted, build, function, wanted[:3],
            of(events, function)[:3])


@claim
def static_variables_of_functions_are_named_after_them():
    path = program()
    events = traced(f"{path} {log_path()} 5", f"{path}:counted(n, calls)",
                    f"{path}:probed(n, counted::calls, main.c::counted::calls, main::two.id)")
    calls = [100] + [int(after) for _, after in logged(log_path(), "calls")]
    expect(of(events, "counted") == [[str(n), str(calls[n - 5])] for n in range(5, 45)], events[:3])
    expect(
        of(events, "probed") == [[str(n)] + [str(calls[n - 5])] * 2 + ["2"] for n in range(5, 45)],
        events[:3])


@claim
def files_and_the_programs_own_name_tell_variables_apart():
    path = program()
    own = os.path.basename(path)
    events = traced(
        f"{path} {log_path()} 0",
        f"{path}:probed(counter, main.c::counter, 'other-file.c'::counter, "
        f"{own}::level, &level == &main.c::level, sizeof(server.table), &counter:hex)",
        f"{library()}:lib_probed(libglobals.so::lib_own, lib.c::counter)")
    main_log, other, lib = (logged(log_path(), name) for name in ("main", "b", "lib"))
    other = [["0", "77"], *other]
    for i, values in enumerate(of(events, "probed")):
        expect(values[:6] == [main_log[i][5]] * 2 + [other[i][1], main_log[i][8], "1", "16"], i,
               values)
    expect(len({values[6] for values in of(events, "probed")}) == 1, events[:2])
    expect(of(events, "lib_probed") == [words[2:] for words in lib], lib[:3])


@claim
def conditions_over_them_hold_as_the_program_computes_them():
    path = program()
    events = traced(f"{path} {log_path()} 0",
                    f"{path}:probed(n) if counter % 3 == 1 && mode == \"slow\"",
                    f"{path}:b_probed(n) if server.load > 10.5 || server.clients->next",
                    f"{path}:copied(server.n / 3) if level > 4 && server.n > 0")
    words = logged(log_path(), "main")
    wanted = {
        "probed": [w[0] for w in words if int(w[5]) % 3 == 1 and w[6] == "slow"],
        "b_probed": [w[0] for w in words if int(w[0]) / 2 > 10.5 or w[1] == "two"],
        "copied": [w[0] for w in words if int(w[8]) > 4]
    }
    for function, numbers in wanted.items():
        expect(numbers and [v[0] for v in of(events, function)] == numbers, function, numbers)


@claim
def processes_that_begin_later_and_run_together_have_their_own():
    path = program()
    runs = [(log_path(i), 1000 * i) for i in range(4)]
    script = write(
        "several.sh",
        "".join(f"{path} {log} {base} &\n"
                for log, base in runs[:3]) + f"wait\n{path} {runs[3][0]} {runs[3][1]}\n")
    events = traced(f"sh {script}", "-f", f"{path}:probed(n, server.n, counter, mode, &counter)")
    by_pid = collections.defaultdict(list)
    for e in events:
        by_pid[e["pid"]].append([shown(v) for v in e["args"].values()])
    expect(len(by_pid) == 4, list(by_pid))
    found = sorted([v[:4] for v in values] for values in by_pid.values())
    wanted = sorted([[w[0], w[2], w[5], w[6]] for w in logged(log, "main")] for log, _ in runs)
    expect(found == wanted, found[0][:3], wanted[0][:3])
    expect(len({values[0][4] for values in by_pid.values()}) > 1, "all at one address")


@claim
def sums_and_keys_may_have_them():
    path = program()
    out = os.path.join(folder(), "rows")
    r = trace("--json", "-o", out, "-c", f"{path} {log_path()} 0", "--sum", "server.n", "--max",
              "counter", "--by", "level, mode, server.clients->name", f"{path}:probed")
    expect(r.status == 0, r)
    with open(out, encoding="utf-8") as file:
        rows = json.loads(file.read().splitlines()[0])["rows"]
    wanted = collections.defaultdict(lambda: [0, 0])
    for w in logged(log_path(), "main"):
        row = wanted[w[8], w[6], w[1]]
        row[0] += int(w[2])
        row[1] = max(row[1], int(w[5]))
    found = {tuple(shown(v) for v in row["by"].values()): row for row in rows}
    expect(set(found) == set(wanted), found.keys(), wanted.keys())
    for key, (total, most) in wanted.items():
        expect(found[key]["sum"] == {"server.n": total} and found[key]["max"] == {"counter": most},
               key, found[key])


@claim
def what_is_not_one_variable_is_refused_with_the_list():
    path = program()
    run("strip", "-g", "-o", path + ".bare", path, check=True)
    for probe, words in (("probed(of_headr)", ("has no parameter of_headr", )),
                         ("probed(nowhere.c::counter)", ("no variable nowhere.c::counter", )),
                         ("probed(main.c::nothing)", ("no variable main.c::nothing", )),
                         ("probed(counted::counter)", ("no variable counted::counter", )),
                         ("probed(globals.h::of_header)",
                          ("of_header is 2 variables", "main.c::of_header",
                           "'other-file.c'::of_header")), ("probed(calls)",
                                                           ("has no parameter calls", ))):
        r = trace("--dry-run", f"{path}:{probe}")
        expect(r.status == 2 and "^" in r.err and all(w in r.err for w in words), probe, r)
    r = trace("--dry-run", f"{path}.bare:probed(level)")
    expect(r.status == 2 and "level is a symbol of 4 bytes" in r.err, r)


@claim
def lines_list_the_variables_of_their_file():
    path = program()
    r = cairn("sites", path, "--vars", "--json", "b_probed")
    places = [o for o in r.objects() if "vars" in o]
    found = {v["name"]: v for v in places[0]["vars"]}
    expect(found["counter"]["kind"] == "global" and found["counter"]["loc"], found)
    expect(found["of_header"]["kind"] == "global" and "server" not in found, found)
    line = places[0]["line"]
    events = traced(f"{path} {log_path()} 0", f"{path}:other-file.c:{line}(counter, level)")
    expect([v[0]
            for v in of(events, f"other-file.c:{line}")] == [w[1] for w in logged(log_path(), "b")],
           events[:3])


HIDING = r"""
#include <stdio.h>
static const int limit = 10;
static int debug_level;
int dropped = 6;
static int counter = 40;
__thread int gone = 31337, alive = 1, other = 5000;
extern int sink;
__attribute__((noinline, noclone)) void work(int n)
{
	if (n < limit)
		sink += n;
	if (debug_level)
		puts("debug");
	__asm__ volatile("" : : : "memory");
}
__attribute__((noinline, noclone)) void shadow(int n)
{
	int local = n * 3;
	counter++;
	if (n < 100) {
		static int counter = 7;
		counter += n;
		sink += counter;
	}
	__asm__ volatile("" : "+r"(local) : : "memory");
	sink += local;
}
int main(int argc, char **argv)
{
	FILE *out = fopen(argv[1], "w");
	for (int n = 0; n < 4; n++) {
		fprintf(out, "shadow %d\n", counter);
		shadow(n);
		alive += n;
		other++;
		fprintf(out, "work %d\nthread %d %d\n", sink, alive, other);
		work(n);
	}
	fclose(out);
	return 0;
}
"""
HIDDEN = """
int limit = 999, sink, local = 5;
static int debug_level = 7, only = 8, dropped = 9;
void set(int n) { debug_level = n; only = n; dropped = n; }
int get(void) { return debug_level + only + dropped + limit + local; }
"""
SCOPES = r"""
#include <stdio.h>
#define NI __attribute__((noinline, noclone))
int count = 555, total = 777, shared = 1;
static int limit = 3;
struct base { int total; };
struct T : base {
	int count;
	static int shared;
	NI int get(int n) { __asm__ volatile("" : : : "memory"); return count + total + shared + n; }
};
int T::shared = 60;
namespace ns {
extern int limit;
NI int f(int n) { __asm__ volatile("" : : : "memory"); return n < limit; }
}
NI int outer(int n) { __asm__ volatile("" : : : "memory"); return n < limit; }
int main(int argc, char **argv)
{
	FILE *out = fopen(argv[1], "w");
	T t;
	t.count = 41, t.total = 42;
	for (int n = 0; n < 3; n++) {
		limit++, ns::limit--, T::shared++;
		fprintf(out, "get %d %d\nf %d\nouter %d\n", t.count, T::shared, ns::limit, limit);
		count += t.get(n) + ns::f(n) + outer(n);
	}
	fclose(out);
}
"""


def hiding():
    at = os.path.join(folder(), "hiding")
    if os.path.exists(at):
        return at
    write("hiding.c", HIDING)
    write("hidden.c", HIDDEN)
    run(need("gcc"),
        "-g",
        "-O2",
        "-fdata-sections",
        "-Wl,--gc-sections,-u,set,-u,get",
        "-o",
        at,
        "hiding.c",
        "hidden.c",
        cwd=folder(),
        check=True)
    return at


def refused(path, function, name, words):
    r = trace("--dry-run", f"{path}:{function}({name})")
    expect(r.status == 2 and all(w in r.err for w in words), function, name, r)


@claim
def a_variable_that_was_left_out_hides_those_of_other_files():
    path = hiding()
    for name in ("limit", "debug_level", "dropped"):
        r = trace("--dry-run", f"{path}:work({name})")
        expect("optimised out" in r.out + r.err, name, r)
    refused(path, "work", "only", ("work can name", "hidden.c::only"))
    refused(path, "shadow", "local", ("is a variable of shadow", ))
    events = traced(f"{path} {log_path()}",
                    f"{path}:work(sink, hidden.c::limit, hidden.c::debug_level, hidden.c::local)",
                    f"{path}:shadow(counter)")
    expect(
        of(events, "work") == [w + ["999", "7", "5"] for w in logged(log_path(), "work")],
        events[:2])
    expect(of(events, "shadow") == logged(log_path(), "shadow"), events[:2])


@claim
def a_thread_local_variable_that_the_linker_dropped_is_not_the_first_one():
    path = hiding()
    r = trace("--dry-run", f"{path}:work(gone)")
    expect("optimised out" in r.out + r.err, r)
    events = traced(f"{path} {log_path()}", f"{path}:work(alive, other)")
    expect(of(events, "work") == logged(log_path(), "thread"), events[:2])


@claim
def scopes_of_a_function_hide_the_variables_of_its_file():
    path = os.path.join(folder(), "scopes")
    write("scopes.cc", SCOPES)
    write("other.cc", "namespace ns { int limit = 100; }\n")
    run(need("g++"), "-g", "-O1", "-o", path, "scopes.cc", "other.cc", cwd=folder(), check=True)
    for name in ("count", "total"):
        refused(path, "T::get", name, (f"write this->{name}", ))
    events = traced(f"{path} {log_path()}", f"{path}:T::get(this->count, shared)",
                    f"{path}:ns::f(limit)", f"{path}:outer(limit)")
    for function, name in (("T::get", "get"), ("ns::f", "f"), ("outer", "outer")):
        expect(of(events, function) == logged(log_path(), name), function, events[:3])


THREAD_LIBRARY = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>
static __thread long own = 40;
static __thread char room[100];
__thread int exported = 1;
__attribute__((noinline, noclone)) void PROBED(int n)
{
	__asm__ volatile("" : : "r"(n) : "memory");
}
void STEP(FILE *out, int n)
{
	static __thread int calls;
	own += n;
	exported += 2;
	calls++;
	room[n & 63]++;
	fprintf(out, "%s %d %ld %d %d\n", NAME, gettid(), own, exported, calls);
	PROBED(n);
}
"""
THREADS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
enum { N_THREADS = 6, N = 12 };
void gd_step(FILE *out, int n);
void ie_step(FILE *out, int n);
static __thread char odd[3];
__thread int level = 5;
__thread struct { int a; long b; const char *name; } rec = {1, -1, "none"};
static __thread _Alignas(64) int aligned;
static void (*late)(FILE *out, int n);
static FILE *out;
__attribute__((noinline, noclone)) void probed(int n)
{
	__asm__ volatile("" : : "r"(n) : "memory");
}
static void *run(void *arg)
{
	static __thread unsigned calls;
	for (int n = 0; n < N; n++) {
		level += (int)(long)arg;
		rec.a = n;
		rec.b -= (long)arg;
		rec.name = n & 1 ? "odd" : "even";
		aligned = n * 7;
		odd[n % 3]++;
		calls++;
		__asm__ volatile("" : : : "memory");
		fprintf(out, "main %d %d %d %ld %s %d %d %u\n", gettid(), level, rec.a, rec.b, rec.name,
			aligned, odd[0], calls);
		probed(n);
		gd_step(out, n);
		ie_step(out, n);
		late(out, n);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[N_THREADS];
	out = fopen(argv[1], "w");
	late = (void (*)(FILE *, int))dlsym(dlopen(argv[2], RTLD_NOW), "late_step");
	run((void *)1);
	for (long i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)(i + 2));
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	fclose(out);
	return 0;
}
"""
THREAD_LIBRARIES = (("gd", ()), ("ie", ("-ftls-model=initial-exec", )), ("late", ()))


def threads(build):
    """ The program and its libraries by name. """
    compiler, *flags = build.split()
    at = os.path.join(folder(), "threads" + "".join(build.split()).replace("-", "_"))
    os.makedirs(at + ".d", exist_ok=True)
    write(at + ".d/lib.c", THREAD_LIBRARY)
    write(at + ".d/threads.c", THREADS)
    common = [need(compiler), "-g", *flags, "-w"]
    libs = {}
    for name, model in THREAD_LIBRARIES:
        libs[name] = f"{at}.d/lib{name}.so"
        run(*common,
            "-fPIC",
            "-shared",
            *model,
            f"-DPROBED={name}_probed",
            f"-DSTEP={name}_step",
            f'-DNAME="{name}"',
            "-o",
            libs[name],
            at + ".d/lib.c",
            check=True)
    run(*common,
        "-o",
        at,
        at + ".d/threads.c",
        libs["gd"],
        libs["ie"],
        "-Wl,-rpath," + at + ".d",
        "-lpthread",
        "-ldl",
        check=True)
    return at, libs


def by_thread(rows):
    ret = collections.defaultdict(list)
    for tid, *values in rows:
        ret[str(tid)].append(values)
    return ret


@claim_each("gcc -O2", "clang -O1 -no-pie")
def each_thread_has_its_own_thread_local_variables(build):
    path, libs = threads(build)
    events = traced(
        f"{path} {log_path()} {libs['late']}",
        f"{path}:probed(level, rec.a, rec.b, rec.name, aligned, odd[0] + 0, run::calls)",
        *(f"{libs[name]}:{name}_probed(own, STEP::calls)".replace("STEP", name + "_step")
          for name in libs), f"{libs['ie']}:ie_probed(exported)")
    found = collections.defaultdict(list)
    for e in events:
        name = e["function"].split("_")[0]
        key = name + "+" if "exported" in e["args"] else name
        found[key].append([e["tid"], *(shown(v) for v in e["args"].values())])
    wanted = {name: by_thread(logged(log_path(), name)) for name in ("main", "gd", "ie")}
    expect(len(wanted["main"]) == 7, wanted["main"].keys())
    expect(by_thread(found["probed"]) == wanted["main"], found["probed"][:3])
    for name in ("gd", "ie"):
        expect(
            by_thread(found[name]) == {
                tid: [[w[0], w[2]] for w in rows]
                for tid, rows in wanted[name].items()
            }, found[name][:3])
    expect(
        by_thread(
            found["ie+"]) == {tid: [[w[1]] for w in rows]
                              for tid, rows in wanted["ie"].items()}, found["ie+"][:3])
    # Blocks that a thread gets later may be another library's, and are not read.
    expect(len(found["late"]) == 84, len(found["late"]))
    expect(not any(v.lstrip("-").isdigit() for row in found["late"] for v in row[1:]),
           found["late"][:3])


if __name__ == "__main__":
    main()
