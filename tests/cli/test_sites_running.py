#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn sites --running: addresses of the kernel that runs and of its modules, from a made-up proc
and sysfs. The oracle is nm: what it prints is shifted by hand, and is what kallsyms has."""
import gzip
import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess

from claims import cairn, claim, compile_c, expect, main, need, path_of, run, write
from made_up_kernel import (LINK, PROGRAM, RELEASE, SLIDE, build_id, kallsyms, kcore,
                            module, put, symbols, system, vmlinux, with_btf)


def running(root, *words, **env):
    return cairn("sites",
                 *words,
                 env={
                     **os.environ, "CAIRN_KERNEL_ROOT": root,
                     "CAIRN_CACHE": "read",
                     "XDG_CACHE_HOME": path_of("cache"),
                     **env
                 })


def told(result):
    """[(where it runs, link-time address, locations)] of the inlined copies."""
    expect(result.status == 0, result)
    return sorted((int(s["running"], 16), int(s["addr"], 16),
                   tuple(a["loc"] for a in s["args"]))
                  for s in result.objects() if s["kind"] == "inlined")


def offline(path, *words):
    """The same of the file, without what is in .init.text."""
    r = cairn("sites", path, *words, "--json", "--no-cache", check=True)
    return sorted(
        (int(s["addr"], 16), s["section"], tuple(a["loc"] for a in s["args"]))
        for s in r.objects()
        if s["kind"] == "inlined" and s["section"] != ".init.text")


def shifted(path, slide, *words):
    return [(at + slide, at, args) for at, _, args in offline(path, *words)]


@claim
def sites_of_a_debug_file_are_shifted_and_freed_code_is_left_out():
    root = system("named")
    r = running(root, "--running", "--debug-file", vmlinux(), "weigh",
                "--json")
    expect(
        told(r) == shifted(vmlinux(), SLIDE, "weigh") and len(told(r)) == 2, r)
    expect("1 site left out" in r.err, r)
    text = running(root, "--running", "--debug-file", vmlinux(), "weigh")
    for at, _, _ in told(r):
        expect(f"  {at:#x}  inlined in" in text.out, text)
    expect("2 sites: 0 bodies, 2 inlined" in text.out, text)


@claim
def vmlinux_is_found_where_distributions_put_it():
    for place in (f"usr/lib/debug/boot/vmlinux-{RELEASE}",
                  f"boot/vmlinux-{RELEASE}",
                  f"usr/lib/debug/lib/modules/{RELEASE}/vmlinux"):
        root = system("at" + place.replace("/", "-"))
        put(root, place, "")
        shutil.copy(vmlinux(), os.path.join(root, place))
        r = running(root, "--running", "weigh", "--json", "--no-cache")
        expect(told(r) == shifted(vmlinux(), SLIDE, "weigh"), place, r)
    by_id = system("by-id")
    number = build_id(vmlinux())
    put(by_id, f"usr/lib/debug/.build-id/{number[:2]}/{number[2:]}.debug", "")
    shutil.copy(
        vmlinux(),
        f"{by_id}/usr/lib/debug/.build-id/{number[:2]}/{number[2:]}.debug")
    r = running(by_id, "--running", "weigh", "--json", "--no-cache")
    expect(told(r) == shifted(vmlinux(), SLIDE, "weigh"), r)


@claim
def a_sidecar_answers_alone_also_from_the_cache():
    root, made = system("sidecar"), path_of("kernel.cairn")
    cairn("sidecar", vmlinux(), "-o", made, check=True)
    r = running(root, "--running", "--sidecar", made, "weigh", "--json")
    expect(told(r) == shifted(vmlinux(), SLIDE, "weigh"), r)
    none = running(root, "--running", "weigh")
    expect(
        none.status == 3 and "nothing describes" in none.err
        and RELEASE in none.err, none)
    os.makedirs(path_of("filled/cairn"), exist_ok=True)
    shutil.copy(made, path_of(f"filled/cairn/{build_id(vmlinux())}.cairn"))
    r = running(root,
                "--running",
                "weigh",
                "--json",
                XDG_CACHE_HOME=path_of("filled"))
    expect(told(r) == shifted(vmlinux(), SLIDE, "weigh"), r)
    r = running(root,
                "--running",
                "weigh",
                "--no-cache",
                XDG_CACHE_HOME=path_of("filled"))
    expect(r.status == 3, r)


@claim
def all_functions_are_listed_without_freed_code():
    root = system("all")
    r = running(root, "--running", "--debug-file", vmlinux(), "--sites",
                "--json")
    expect(told(r) == shifted(vmlinux(), SLIDE, "--sites"), r)
    expect(not [s for s in r.objects() if s["section"] == ".init.text"], r)
    total = running(root, "--running", "--debug-file", vmlinux(),
                    "--json").objects()[-1]
    expect(total["inlined"] == 2, total)


@claim
def kernel_btf_answers_where_nothing_else_is():
    for slide in (0, SLIDE):
        root = system(f"btf{slide}", slide)
        os.makedirs(os.path.join(root, "sys/kernel/btf"), exist_ok=True)
        cairn("btf",
              "encode",
              vmlinux(),
              "-o",
              os.path.join(root, "sys/kernel/btf/vmlinux"),
              check=True)
        r = running(root, "--running", "weigh", "--json")
        wanted = shifted(vmlinux(), slide, "weigh")
        expect([at for at, _, _ in told(r)] == [at for at, _, _ in wanted], r)
        # BTF cannot express all locations.
        for (_, _, found), (_, _, known) in zip(told(r), wanted):
            expect(all(a in (None, b) for a, b in zip(found, known)), found,
                   known)
        expect(any(a for _, _, args in told(r) for a in args), r)
        expect("1 site left out" in r.err, r)
        expect({s["rule"] for s in r.objects()} == {"btf"}, r)
        bodies = running(root, "--running", "mix", "--json").objects()
        at = {name: at + slide for at, _, name in symbols(vmlinux())}
        expect([int(s["running"], 16) for s in bodies] == [at["mix"]], bodies)


def with_kernel_btf(name, change=lambda code: code):
    """A root whose kernel shows BTF with sites, and its code."""
    root = system(name)
    os.makedirs(os.path.join(root, "sys/kernel/btf"), exist_ok=True)
    cairn("btf", "encode", vmlinux(), "-o", os.path.join(root, "sys/kernel/btf/vmlinux"), check=True)
    kcore(root, vmlinux(), SLIDE, change)
    return root


def hazards(r):
    expect(r.status == 0, r)
    return {int(s["running"], 16) - SLIDE: s["hazard"] for s in r.objects() if "hazard" in s}


@claim
def the_code_that_runs_is_looked_at():
    at = {name: at for at, _, name in symbols(vmlinux())}
    unknown = system("unread")
    os.makedirs(os.path.join(unknown, "sys/kernel/btf"), exist_ok=True)
    cairn("btf", "encode", vmlinux(), "-o", os.path.join(unknown, "sys/kernel/btf/vmlinux"),
          check=True)
    expect(hazards(running(unknown, "--running", "mix", "--json")) == {at["mix"]: "not-checked"})
    root = with_kernel_btf("read")
    expect(hazards(running(root, "--running", "mix", "--json")) == {at["mix"]: None})
    expect(set(hazards(running(root, "--running", "weigh", "--json")).values()) == {None})


@claim
def a_breakpoint_of_others_is_no_other_build():
    places = [a for _, a, _ in shifted(vmlinux(), 0, "weigh")]

    def probe(code):
        for at in places:
            code[at - 0xffffffff81000000] = 0xcc
        return code

    root = with_kernel_btf("probed", probe)
    found = hazards(running(root, "--running", "weigh", "--json"))
    expect(found == dict.fromkeys(places), found, places)


@claim
def sites_of_another_build_are_refused():
    root = with_kernel_btf("other-sites")
    path = os.path.join(root, "sys/kernel/btf/vmlinux.inline")
    with open(path, "rb") as file:
        blob = bytearray(file.read())
    # The LOCSEC of .text, with two sites of three words: one byte later each.
    at = blob.index(struct.pack("<II", 22 << 24 | 2, 0)) + 8
    for offset in (at + 8, at + 20):
        struct.pack_into("<I", blob, offset, struct.unpack_from("<I", blob, offset)[0] + 1)
    with open(path, "wb") as file:
        file.write(blob)
    r = running(root, "--running", "weigh", "--json")
    expect(r.status == 3 and "another build's" in r.err, r)
    root = with_kernel_btf("other-base")
    other = compile_c("other-base.o", "struct a { int b; } a;\n", flags=("-g", "-c"))
    cairn("btf", "encode", other, "-o", path_of("other-base.btf"), check=True)
    shutil.copy(path_of("other-base.btf"), os.path.join(root, "sys/kernel/btf/vmlinux"))
    r = running(root, "--running", "weigh", "--json")
    expect(r.status != 0 and ("split from" in r.err or "damaged" in r.err), r)
    os.remove(os.path.join(root, "sys/kernel/btf/vmlinux"))
    r = running(root, "--running", "weigh", "--json")
    expect(r.status != 0 and "vmlinux: No such file" in r.err, r)


@claim
def a_sidecar_of_a_kernel_with_other_types_is_refused_with_both_hashes():
    root, made = system("types"), path_of("types.cairn")
    file, types = with_btf(vmlinux(), "vmlinux-btf")
    cairn("sidecar", file, "-o", made, check=True)
    ask = ("--running", "--sidecar", made, "--sites", "--json")
    expect(told(running(root, *ask)) == shifted(vmlinux(), SLIDE, "--sites"))
    os.makedirs(os.path.join(root, "sys/kernel/btf"))
    for shown, is_it in ((types, True), (types[:-1] + b"x", False), (types + b"x", False),
                         (b"", False)):
        with open(os.path.join(root, "sys/kernel/btf/vmlinux"), "wb") as out:
            out.write(shown)
        r = running(root, *ask)
        if is_it:
            expect(told(r) == shifted(vmlinux(), SLIDE, "--sites"), r)
            continue
        hashes = [hashlib.sha256(b).hexdigest() for b in (types, shown)]
        expect(r.status == 3 and not r.objects() and all(h in r.err for h in hashes), r, hashes)
    # One that was made without .BTF has no hash.
    cairn("sidecar", vmlinux(), "-o", made, check=True)
    expect(told(running(root, *ask)) == shifted(vmlinux(), SLIDE, "--sites"))


@claim
def hidden_addresses_are_refused_with_the_setting():
    root = system("hidden")
    with open(os.path.join(root, "proc/kallsyms"), encoding="ascii") as file:
        lines = file.readlines()
    put(root, "proc/kallsyms", "".join("0" * 16 + line[16:] for line in lines))
    r = running(root, "--running", "--debug-file", vmlinux(), "weigh")
    expect(
        r.status == 3 and "as root" in r.err and "kptr_restrict is 1" in r.err,
        r)
    put(root, "proc/sys/kernel/kptr_restrict", "2\n")
    r = running(root, "--running", "--debug-file", vmlinux(), "weigh")
    expect(r.status == 3 and "sysctl kernel.kptr_restrict=1" in r.err, r)


@claim
def another_build_is_refused():
    other = compile_c("other", PROGRAM.replace("n * 3", "n * 5"), flags=LINK)
    made = path_of("other.cairn")
    cairn("sidecar", other, "-o", made, check=True)
    root = system("another")
    for words in (("--debug-file", other), ("--sidecar", made)):
        r = running(root, "--running", *words, "weigh", "--json")
        expect(r.status == 3 and not r.objects() and "build" in r.err, words,
               r)


@claim
def functions_that_were_moved_are_refused():
    root = system("moved")
    lines = kallsyms(vmlinux(), SLIDE).splitlines()
    lines = [
        line if line.split()[2][0] == "_" else
        f"{int(line.split()[0], 16) + 0x40 * i:016x} {line.split(' ', 1)[1]}"
        for i, line in enumerate(lines)
    ]
    put(root, "proc/kallsyms", "\n".join(lines) + "\n")
    r = running(root, "--running", "--debug-file", vmlinux(), "weigh")
    expect(r.status == 3 and "functions are elsewhere" in r.err, r)


@claim
def sites_of_a_module_are_where_its_sections_are():
    root = system("module")
    ko, where = module(root)
    r = running(root, "--running=a-sample", "weigh", "--json", "--no-cache")
    wanted = [(where[s["section"]] + s["section_off"],
               tuple(a["loc"] for a in s["args"])) for s in
              cairn("sites", ko, "weigh", "--json", "--no-cache",
                    check=True).objects()
              if s["kind"] == "inlined" and s["section"] != ".init.text"]
    expect(
        len(wanted) == 3
        and sorted(wanted) == [(at, args) for at, _, args in told(r)], r)
    put(root, "sys/module/a_sample/sections/.text", "0x0000000000000000\n")
    r = running(root, "--running=a_sample", "weigh")
    expect(r.status == 3 and "hides its addresses" in r.err, r)


@claim
def what_is_no_loaded_module_is_said_to_be_none():
    root = system("none")
    r = running(root, "--running=gone", "weigh")
    expect(r.status == 1 and "no module gone is loaded" in r.err, r)
    os.makedirs(os.path.join(root, "sys/module/tcp_cubic"))
    r = running(root, "--running=tcp_cubic", "weigh")
    expect(r.status == 1 and "built into the kernel" in r.err, r)


@claim
def a_compressed_module_is_read():
    root = system("compressed")
    ko, _ = module(root)
    wanted = told(running(root, "--running=a_sample", "weigh", "--json"))
    expect(wanted)
    with open(ko, "rb") as file:
        bytes_of = file.read()
    for name, packed in (("gz", gzip.compress(bytes_of)), ("zst", None),
                         ("xz", lzma.compress(bytes_of))):
        path = f"{ko}.{name}"
        if packed:
            with open(path, "wb") as file:
                file.write(packed)
        elif not shutil.which("zstd"):
            continue
        else:
            subprocess.run(["zstd", "-q", ko, "-o", path], check=True)
        put(
            root, f"lib/modules/{RELEASE}/modules.dep",
            f"{os.path.relpath(path, os.path.join(root, 'lib/modules', RELEASE))}:\n"
        )
        hidden = ko + ".hidden"
        os.rename(ko, hidden)
        r = running(root, "--running=a_sample", "weigh", "--json")
        os.rename(hidden, ko)
        if name == "xz":
            expect(r.status == 3 and "xz" in r.err and "--debug-file" in r.err,
                   r)
        else:
            expect(told(r) == wanted, name, r)


@claim
def damaged_files_are_refused():
    root = system("damaged")
    for name, text, word in (("proc/kallsyms",
                              "ffffffff8100000 T\n\n[x]\nzz T _text\n",
                              "_stext"), ("sys/kernel/notes", "\1\2\3",
                                          "build-id")):
        good = system("damaged")
        put(root, name, text)
        r = running(good, "--running", "--debug-file", vmlinux(), "weigh")
        expect(r.status in (3, 4) and word in r.err, name, r)


@claim
def other_answers_are_about_files():
    for words in (("--lines", "weigh"), ("--usdt", ), ("--hazards", )):
        r = cairn("sites", "--running", *words)
        expect(r.status == 2 and "name vmlinux" in r.err, words, r)
    for words in (("--running", "--emit", "perf", "weigh"),
                  (vmlinux(), "weigh", "--emit", "tracefs")):
        r = cairn("sites", *words)
        expect(r.status == 2 and "--emit tracefs is for --running" in r.err,
               words, r)


@claim
def a_script_sets_kprobes_at_the_sites_of_the_kernel_that_runs():
    root = system("tracefs")
    r = running(root, "--running", "--debug-file", vmlinux(), "weigh", "mix",
                "--emit", "tracefs")
    # This kernel has no tables of code that it refuses probes on.
    expect(r.status == 0 and RELEASE in r.out, r)
    run("sh", "-n", write("kprobes.sh", r.out), check=True)
    set_at = [
        int(at, 16) for at in re.findall(
            r"^printf '%s\\n' 'p:cairn/\w+ (0x[0-9a-f]+)", r.out, re.M)
    ]
    at = {name: at + SLIDE for at, _, name in symbols(vmlinux())}
    expect(
        set_at == [a for a, _, _ in shifted(vmlinux(), SLIDE, "weigh")] +
        [at["mix"]], r)
    expect("size=%di:s32" in r.out and "a=%di:s32 b=%si:s64" in r.out, r)
    # Constants have a backslash: the second copy's step is 7.
    expect("step=\\7:s32" in r.out, r)
    # What reaches the kernel is what the shell of the system writes, dash for example.
    there = path_of("tracing")
    os.makedirs(os.path.join(there, "events", "cairn"))
    script = r.out.replace("/sys/kernel/tracing || ", f"'{there}' || ")
    ran = run("sh", write("kprobes.sh", script))
    with open(os.path.join(there, "kprobe_events")) as f:
        lines = f.read().splitlines()
    expect(ran.status == 0 and len(lines) == len(set_at), lines, ran)
    expect(any(line.endswith(" step=\\7:s32") for line in lines), lines)


@claim
def names_of_arguments_fit_what_the_kernel_takes():
    long = "number_of_the_many_bytes_that_are_weighed"
    source = (
        f"int sink;\n__attribute__((noinline)) void weigh(int {long})\n"
        f"{{ sink = {long}; }}\nint main(void) {{ weigh(3); return 0; }}\n")
    program = compile_c("weighed", source, flags=("-O1", "-g"))
    r = cairn("sites", program, "weigh", "--emit", "perf")
    # The kernel's MAX_ARG_NAME_LEN is 32.
    expect(r.status == 0 and f" {long[:31]}=%di:s32'" in r.out, r)


if __name__ == "__main__":
    need("nm")
    main()
