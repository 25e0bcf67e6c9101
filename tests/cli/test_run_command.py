#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn run --cover-inlined -- COMMAND: a program that attaches its BPF programs itself.

The command is a loader of libbpf's, or bpftrace. The traced program logs its own calls; what the
loader finds in its map must be that. Kernel functions: tests/truth/kernel_cover.py.
"""
import collections
import os
import re
import signal
import subprocess

from called import HEAD, compile_object, target
from claims import (CAIRN, SECONDS, cairn, claim, claim_each, claim_plainly,
                    compile_c, expect, main, need, need_root, path_of, run)

# Its words are done one after the other.
LOADER = r"""
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/perf_event.h>
struct call { long a, b, value; char function[8], name[8]; };
static struct bpf_object *object;
static struct bpf_link *attached;
static int event = -1;
static const char *path, *function;
static struct bpf_program *program(const char *name)
{
	return bpf_object__find_program_by_name(object, name);
}
static void attach(const char *name, int pid, unsigned long cookie, int retprobe)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .func_name = function, .bpf_cookie = cookie, .retprobe = retprobe);

	attached = bpf_program__attach_uprobe_opts(program(name), pid, path, 0, &opts);
	printf("attached %s %d\n", name, attached ? 0 : errno);
}
/* As bcc does it: by ioctl(2), and with an offset of its own. */
static void attach_event(const char *name, unsigned long offset)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .config1 = (unsigned long)path, .config2 = offset};
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");

	if (!f || fscanf(f, "%u", &attr.type) != 1)
		return;
	fclose(f);
	event = syscall(__NR_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	int failed = ioctl(event, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(program(name))) ||
		     ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
	printf("attached %s %d\n", name, failed ? errno : 0);
}
static void show(int fd)
{
	struct call key;

	while (!bpf_map_get_next_key(fd, NULL, &key)) {
		long n = 0;
		bpf_map_lookup_elem(fd, &key, &n);
		printf("%s %ld %ld %s %ld x%ld\n", key.function, key.a, key.b, key.name, key.value, n);
		bpf_map_delete_elem(fd, &key);
	}
	printf("shown\n");
}
static void take(char **word)
{
	char *of = word[0] + 1;

	if (*word[0] == 'a')
		attach(of, -1, 0, 0);
	else if (*word[0] == 'c')
		attach(of, -1, 4711, 0);
	else if (*word[0] == 'r')
		attach(of, -1, 0, 1);
	else if (*word[0] == 'o')
		attach(of, atoi(getenv("ONLY")), 0, 0);
	else if (*word[0] == 'e')
		attach_event(of, strtoul(getenv("OFFSET"), NULL, 0));
	else if (*word[0] == 'd')
		bpf_link__destroy(attached);
	else if (*word[0] == 'x')
		close(event);
	else if (*word[0] == '0' || *word[0] == '1')
		ioctl(event, *word[0] == '0' ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0);
	else if (*word[0] == 's')
		show(bpf_object__find_map_fd_by_name(object, "run_calls"));
	else if (*word[0] == 'f' && fork())
		_exit(5);
	else if (*word[0] == '!' && system(of))
		exit(99);
	else if (*word[0] == 'w')
		getchar();
	else if (*word[0] == 'k')
		raise(SIGKILL);
	fflush(stdout);
}
int main(int argc, char **argv)
{
	object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object))
		return 77;
	path = argv[2];
	function = argv[3];
	for (int i = 4; argv[i]; i++)
		take(argv + i);
	return 7;
}
"""
PROGRAMS = HEAD + r"""
SEC("uprobe")
int BPF_KPROBE(on_put, long idx, int s, const char *name, struct node *n)
{
	struct call call = {.a = idx, .b = s, .value = -1, .function = "put"};

	bpf_probe_read_user_str(call.name, sizeof(call.name), name);
	if (n)
		bpf_probe_read_user(&call.value, 8, &n->value);
	return count(&call);
}
SEC("uprobe")
int on_cookie(struct pt_regs *ctx)
{
	struct call call = {.a = bpf_get_attach_cookie(ctx), .function = "cookie", .name = "-"};

	return count(&call);
}
SEC("uprobe")
int on_stack(struct pt_regs *ctx)
{
	struct call call = {.a = PT_REGS_SP(ctx) != 0, .function = "stack", .name = "-"};

	return count(&call);
}
"""


def loader():
    need_root()
    return compile_c("loader", LOADER, flags=("-O1", "-w", "-Wl,--no-as-needed,-lbpf"))


def words(*todo, function="put", options=()):
    return [
        CAIRN, "run", "--cover-inlined", "--no-cache", *options, "--",
        loader(),
        compile_object("programs", PROGRAMS),
        target(), function, *todo
    ]


def covered(*todo, env=None, **kwargs):
    return run(*words(*todo, **kwargs), env={**os.environ, **(env or {})})


def calls():
    """What the program logs of put(), as the loader shows it."""
    found = collections.Counter(
        line for line in run(target(), check=True).out.splitlines()
        if line.startswith("put "))
    return {f"{line} x{n}" for line, n in found.items()}


def tables(text):
    """What each s shows."""
    return [{line
             for line in part.splitlines() if re.search(r" x\d+$", line)}
            for part in text.split("shown\n")[:-1]]


def traced():
    return f"!{target()} >/dev/null"


@claim
def all_calls_are_seen_and_the_command_is_as_alone():
    r = covered("aon_put", traced(), "s", "d", traced(), "s")
    seen, after = tables(r.out)
    expect(
        r.status == 7 and "attached on_put 0" in r.out
        and "2 sites more covered" in r.err, r)
    expect(seen == calls() and len(seen) > 10, seen, calls(), r)
    # The link was closed, and the command went on.
    expect(not after, after, r)


@claim
def so_are_those_of_perf_events():
    symbol = next(line
                  for line in run("nm", target(), check=True).out.splitlines()
                  if line.endswith(" put"))
    offset = {"OFFSET": hex(int(symbol.split()[0], 16))}
    r = covered("eon_put",
                traced(),
                "s",
                "0",
                traced(),
                "s",
                "1",
                traced(),
                "s",
                "x",
                traced(),
                "s",
                env=offset)
    # The kernel runs the program of an event that is disabled.
    seen, off, on, closed = tables(r.out)
    expect(r.status == 7 and seen == off == on == calls() and not closed,
           r)
    # An instruction within a function is none of a function.
    r = covered("eon_put",
                "s",
                env={"OFFSET": hex(int(symbol.split()[0], 16) + 4)})
    expect(
        r.status == 7 and "covered" not in r.err
        and "attached on_put" in r.out, r)


@claim
def the_link_s_cookie_and_process_are_those_of_copies_too():
    r = covered("con_cookie", traced(), "s")
    n = sum(int(line.split(" x")[1]) for line in calls())
    expect(r.status == 7 and tables(r.out) == [{f"cookie 4711 0 - 0 x{n}"}], n,
           r)
    r = covered("oon_put", traced(), "s", env={"ONLY": str(os.getpid())})
    expect(
        r.status == 7 and "2 sites more covered" in r.err
        and tables(r.out) == [set()], r)


@claim
def what_cannot_be_covered_is_not_attached():
    r = covered("aon_stack", "ron_put", "s")
    expect(
        r.status == 7 and "attached on_stack 2" in r.out
        and "attached on_put 2" in r.out and "it reads %rsp" in r.err
        and "it runs at the return" in r.err, r)
    r = covered("aon_stack", traced(), "s", options=["--best-effort"])
    seen, = tables(r.out)
    expect(
        r.status == 7 and "not covered: 2 sites, it reads %rsp" in r.err
        and seen == {"stack 1 0 - 0 x6"}, r)
    # plain() has no copies: whatever the program reads.
    r = covered("aon_stack", "ron_put", "s", function="plain")
    expect(
        r.status == 7 and r.out.count(" 0\n") == 2
        and "not covered" not in r.err, r)


@claim
def a_process_that_goes_on_is_covered_until_it_ends():
    r = covered("aon_put", "f", traced(), "s")
    seen, = tables(r.out)
    # The status is that of the command's own process.
    expect(r.status == 5 and seen == calls(), seen, r)


@claim
def signals_reach_the_command():
    with subprocess.Popen(words("aon_put", "w"),
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL,
                          text=True) as p:
        said = p.stdout.readline()
        p.send_signal(signal.SIGTERM)
        expect(
            p.wait(SECONDS) == 128 + signal.SIGTERM and "attached" in said,
            said, p.returncode)
    r = covered("aon_put", "k")
    expect(r.status == 128 + signal.SIGKILL, r)


@claim
def a_supervisor_that_is_killed_leaves_the_command_as_it_would_be_alone():
    with subprocess.Popen(words("aon_put", "w", traced(), "s", "d"),
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL,
                          text=True) as p:
        said = p.stdout.readline()
        p.kill()
        p.wait(SECONDS)
        p.stdin.write("\n")
        p.stdin.close()
        seen, = tables(said + p.stdout.read())
    # Calls of the body alone.
    body = {line for line in calls() if " body " in line}
    expect(len(body) == 6 and seen == body, seen)


@claim_plainly
def bpftrace_sees_all_calls():
    need("bpftrace")
    need_root()
    script = f'uprobe:{target()}:put {{ printf("seen %d %d %s\\n", arg0, (int32)arg1, str(arg2)); }}'
    r = run(CAIRN, "run", "--cover-inlined", "--no-cache", "--", "bpftrace",
            "-e", script, "-c", target())
    log = collections.Counter(" ".join(line.split()[1:4])
                              for line in r.out.splitlines()
                              if line.startswith("put "))
    seen = collections.Counter(line[5:] for line in r.out.splitlines()
                               if line.startswith("seen "))
    expect(r.status == 0 and seen == log and sum(log.values()) == 18, seen,
           log, r)


@claim_each(("--cover-inlined --json -- true", 2, "of an object"),
            ("--cover-inlined -- /nonexistent/tool", 2, "no program"),
            ("-- true", 2, "--cover-inlined"),
            ("--cover-inlined -- STATIC", 3, "no program interpreter"),
            ("--cover-inlined -- false", 1, ""))
def a_command_line_has_its_status(row):
    line, status, text = row
    if "STATIC" in line:
        line = line.replace(
            "STATIC",
            compile_c("static",
                      "int main(void) { return 0; }",
                      flags=("-static", )))
    r = cairn("run", *line.split())
    expect(r.status == status and text in r.err and (not r.out or status == 2),
           r)


if __name__ == "__main__":
    main()
