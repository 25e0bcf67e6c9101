#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace -k: the places of kernel functions, from a made-up proc and sysfs (made_up_kernel.py),
and what is refused. Where they are is compared with nm, by way of cairn sites --running. Real
kernels with kprobes are those of tests/kernels/trace.py."""
import os

from claims import Skip, cairn, claim, compile_c, expect, main, path_of
from made_up_kernel import (LINK, PROGRAM, RELEASE, SLIDE, kallsyms, module, notes_of, put, symbols,
                            system, vmlinux)

KPROBES = "sys/bus/event_source/devices/kprobe/type"


def with_kprobes(name):
    root = system(name)
    put(root, KPROBES, "8\n")
    return root


def ask(root, verb, *words):
    return cairn(verb,
                 *words,
                 env={
                     **os.environ, "CAIRN_KERNEL_ROOT": root,
                     "CAIRN_CACHE": "off"
                 })


def plan(root, *words, debug_file=None):
    found = ("--debug-file", debug_file or vmlinux())
    return ask(root, "trace", "--dry-run", *found, *words)


def places(result, status=0):
    expect(result.status == status, result)
    return sorted(int(s["running"], 16) for s in result.objects() if "running" in s)


def wanted(root, *words):
    return sorted(
        int(s["running"], 16)
        for s in ask(root, "sites", *words, "--json").objects() if "running" in s)


@claim
def places_are_those_of_sites_running():
    root = with_kprobes("places")
    expected = wanted(root, "--running", "--debug-file", vmlinux(), "weigh")
    expect(len(expected) == 2, expected)
    for words in (("-k", "weigh"), ("kernel:weigh", ), ("-k", "kernel:weigh"),
                  ("-k", "vmlinux.c:weigh(size) if step > 3")):
        r = plan(root, "--json", *words)
        expect(places(r) == expected, words, r, expected)
        expect("1 site left out" in r.err, r)
    text = plan(root, "-k", "weigh")
    expect("2 sites in the kernel" in text.out and all(f"{at:#x}" in text.out for at in expected),
           text)
    at = {name: at for at, _, name in symbols(vmlinux())}
    expect(places(plan(root, "--json", "-k", "mix")) == [at["mix"] + SLIDE])
    r = plan(root, "--json", "-k", "filler_*")
    expect(places(r) == sorted(at[n] + SLIDE for n in at if n.startswith("filler_")), r)


@claim
def a_sidecar_alone_has_the_same_places():
    root, made = with_kprobes("sidecar"), path_of("kernel.cairn")
    cairn("sidecar", vmlinux(), "-o", made, check=True)
    expected = places(plan(root, "--json", "-k", "weigh"))
    r = ask(root, "trace", "--dry-run", "--sidecar", made, "--json", "-k", "weigh")
    expect(places(r) == expected and len(expected) == 2, r, expected)


@claim
def a_loaded_module_is_named_before_its_function():
    root = with_kprobes("module")
    ko, _ = module(root)
    expected = wanted(root, "--running=a_sample", "--debug-file", ko, "weigh")
    expect(len(expected) == 3, expected)
    for probe in ("a_sample:weigh", "a-sample:weigh", "a_sample:sample.c:weigh"):
        r = plan(root, "--json", "-k", probe, debug_file=ko)
        expect(places(r) == expected, probe, r)
    r = plan(root, "--json", "kernel:a_sample:weigh", debug_file=ko)
    expect(places(r) == expected, r)
    r = plan(root, "-k", "gone:weigh")
    expect(r.status == 1 and "no module gone is loaded" in r.err, r)


@claim
def without_kprobes_the_places_are_left_out():
    root = system("without")
    r = plan(root, "-k", "weigh")
    expect(r.status == 1 and r.out.count("has no kprobes") == 2, r)
    command = ("--debug-file", vmlinux(), "-c", "true", "-k", "weigh")
    r = ask(root, "trace", *command)
    expect(r.status == 3 and "2 sites cannot be probed" in r.err, r)
    expect(r.err.count("weigh inlined in ") == 2 and "--best-effort" in r.err, r)
    if os.geteuid():
        raise Skip("BPF programs are loaded by root")
    r = ask(root, "trace", "--best-effort", "--json", *command)
    summary = r.objects()[-1]
    expect(r.status == 0 and "0 sites attached" in r.err, r)
    expect((summary["attached"], summary["refused"], summary["events"]) == (0, 2, 0), summary)


@claim
def lockdown_is_named():
    root = with_kprobes("locked")
    put(root, "sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    r = plan(root, "-k", "weigh")
    expect(r.status == 0, r)
    put(root, "sys/kernel/security/lockdown", "none integrity [confidentiality]\n")
    r = ask(root, "trace", "--debug-file", vmlinux(), "-c", "true", "-k", "weigh")
    expect(r.status == 3 and "lockdown forbids" in r.err and not r.out, r)


@claim
def what_is_not_there_of_kernel_probes_is_refused():
    root = with_kprobes("refused")
    for words, status, said in (
        (("-k", "usdt:a:b"), 3, "no USDT probes"),
        (("--backend", "uprobe", "-k", "weigh"), 3, "no other kind"),
        (("-c", "true", "kernel:weigh", "main"), 3, "not of both"),
        (("-k", "weigh(nothing)"), 2, "nothing"),
        (("-k", "absent"), 1, "no function absent"),
        (("-k", "start"), 1, "the kernel frees"),
        (("-k", ""), 2, "name is missing"),
    ):
        r = plan(root, *words)
        expect(r.status == status and said in r.err and not r.out, words, r)


@claim
def results_and_durations_are_followed():
    root = with_kprobes("returns")
    r = plan(root, "-k", "mix($ret, $duration) if $ret > a")
    expect(r.status == 0 and "$duration" in r.out and "unavailable" not in r.out, r)
    # Stacks are those of the entries.
    r = plan(root, "-k", "--stack", "mix($ret)")
    expect(r.status == 0 and "unavailable" not in r.out, r)
    # This kernel has no table of BUG(), so there may be ways that nobody knows.
    r = plan(root, "-k", "weigh($duration)")
    expect(r.status == 0 and r.out.count("tables by which the kernel changes") == 2, r)
    for words, status, said in (
        (("-k", "--graph", "mix"), 3, "make no tree"),
        (("-k", "mix+0($ret)"), 2, "only a function returns"),
    ):
        r = plan(root, *words)
        expect(r.status == status and said in r.err and not r.out, words, r)


BUG = """
__asm__(".pushsection __bug_table,\\"aw\\"\\n.long first - ., 0\\n.word 1, 1\\n.popsection");
"""


@claim
def copies_have_a_duration():
    root = with_kprobes("copies")
    program = compile_c("bug", PROGRAM + BUG,
                        flags=(*LINK, "-Wl,-u,__start___bug_table,-u,__stop___bug_table"))
    notes_of(program, os.path.join(root, "sys/kernel/notes"))
    put(root, "proc/kallsyms", kallsyms(program, SLIDE))
    r = plan(root, "-k", "weigh($duration)", debug_file=program)
    expect(r.status == 0 and "2 sites in the kernel" in r.out, r)
    expect("unavailable" not in r.out, r)


@claim
def another_build_and_hidden_addresses_are_refused():
    other = compile_c("other", PROGRAM.replace("n * 3", "n * 5"), flags=LINK)
    made = path_of("other.cairn")
    cairn("sidecar", other, "-o", made, check=True)
    root = with_kprobes("another")
    for words in (("--debug-file", other), ("--sidecar", made)):
        r = ask(root, "trace", "--dry-run", *words, "-k", "weigh")
        expect(r.status == 3 and "build" in r.err and not r.out, words, r)
    with open(os.path.join(root, "proc/kallsyms"), encoding="ascii") as file:
        lines = file.readlines()
    put(root, "proc/kallsyms", "".join("0" * 16 + line[16:] for line in lines))
    r = plan(root, "-k", "weigh")
    expect(r.status == 3 and "kptr_restrict" in r.err, r)
    none = system("nothing")
    r = ask(none, "trace", "--dry-run", "-k", "weigh")
    expect(r.status == 3 and "nothing describes" in r.err and RELEASE in r.err, r)


@claim
def a_debug_file_is_for_kernel_probes_only():
    user = compile_c("user", "int main(void) { return 0; }")
    r = cairn("trace", "--dry-run", "--debug-file", vmlinux(), user + ":main")
    expect(r.status == 2 and "--debug-file" in r.err, r)


if __name__ == "__main__":
    main()
