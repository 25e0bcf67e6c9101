#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn doctor where it is needed most: what is missing has its row, and so has everything else."""

import json
import os
import re

from claims import (BUILD, CAIRN, IS_SANITIZED, SOURCE, Skip, claim, claim_each, compile_c, expect,
                    folder, main, need, need_root, path_of, run, write)

# Runs a program that may not call bpf(2), as in a container.
NO_BPF = """
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 111;
	execv(argv[1], argv + 1);
	return 112;
}
"""


def without(mount_command):
    """The doctor's command in a mount namespace of its own, after that command."""
    need_root()
    words = [
        need("unshare"), "-m", "sh", "-c", mount_command + ' || exit 77; exec "$0" doctor --json',
        CAIRN
    ]
    if run(*words[:4], mount_command).status:
        raise Skip("mounts cannot be changed here")
    return words


def without_proc():
    if IS_SANITIZED:
        raise Skip("the sanitizers read /proc themselves")
    return without("umount -l /proc")


def without_bpf():
    need_root()
    return [compile_c("no_bpf", NO_BPF), CAIRN, "doctor", "--json"]


def without_root():
    need_root()
    os.chmod(folder(), 0o755)
    words = [
        need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
        CAIRN
    ]
    if run(*words, "--version").status:
        raise Skip("another user cannot reach this build")
    return words + ["doctor", "--json"]


# What is missing: the command, the row that says so, and what its remedy names.
MISSING = {
    "proc": (without_proc, "/proc", "mount -t proc"), "sys":
    (lambda: without("umount -l /sys"), "BTF of the kernel", "mount -t sysfs"), "btf":
    (lambda: without("mount -t tmpfs none /sys/kernel/btf"), "BTF of the kernel",
     "CONFIG_DEBUG_INFO_BTF"), "bpf": (without_bpf, "bpf(2)", "seccomp profile"), "root":
    (without_root, "single probes (uprobe)", "sudo cairn doctor"),
}


def rows_of(result):
    rows = [json.loads(line) for line in result.lines()]
    for row in rows:
        expect(
            set(row) == {"what", "ok", "detail", "fix"} and isinstance(row["ok"], bool)
            and row["detail"], row)
    return {row["what"]: row for row in rows}


@claim_each(*MISSING)
def doctor_answers_in_rows_without(what):
    command, name, remedy = MISSING[what]
    usual = rows_of(run(CAIRN, "doctor", "--json"))
    r = run(*command())
    rows = rows_of(r)
    expect(r.status == 1 and list(rows) == list(usual), r)
    expect(not rows[name]["ok"] and remedy in rows[name]["fix"], r)
    # What does not depend on it is as it was.
    expect(rows["machine"] == usual["machine"], r)
    if what != "root":
        expect(
            not rows["single probes (uprobe)"]["ok"] and usual["single probes (uprobe)"]["detail"],
            r)


@claim
def a_row_says_that_a_sample_came_or_why_none_can():
    """Where cairn profile runs the row says yes, and no where it does not."""
    row = rows_of(run(CAIRN, "doctor", "--json"))["samples with stacks (perf events)"]
    spin = compile_c(
        "spin", "int main(void) { for (volatile long i = 0; i < 300000000; i++); return 0; }\n")
    r = run(CAIRN, "profile", "--json", "--no-cache", "-c", spin)
    expect(row["ok"] == (r.status == 0) and ("walked in the kernel" in row["detail"]) == row["ok"],
           row, r)
    unprivileged = run(*without_root())
    expect(not rows_of(unprivileged)["samples with stacks (perf events)"]["ok"], unprivileged)


@claim
def a_stripped_program_can_try_tracing():
    need_root()
    usual = rows_of(run(CAIRN, "doctor", "--json"))
    stripped = path_of("stripped")
    run(need("strip"), "-o", stripped, CAIRN, check=True)
    r = run(stripped, "doctor", "--json")
    rows = rows_of(r)
    expect({name: row["ok"]
            for name, row in rows.items()} == {name: row["ok"]
                                               for name, row in usual.items()}, r)
    if not usual["single probes (uprobe)"]["ok"]:
        raise Skip("tracing does not work here: " + usual["single probes (uprobe)"]["detail"])


@claim
def the_loader_names_a_missing_decoder_as_the_manual_says():
    """Before main() there are no rows. The library's name is changed in a copy of the program."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run(need("readelf"), "-dW", CAIRN, check=True).out)
    decoder = [name for name in needed if name.startswith("libZydis.")]
    if not decoder:
        raise Skip("the decoder is an archive here, and part of the program")
    with open(CAIRN, "rb") as file:
        content = file.read()
    missing = decoder[0].replace("Zydis", "zydiS")
    copy = write("without_decoder",
                 content.replace(decoder[0].encode() + b"\0",
                                 missing.encode() + b"\0"))
    os.chmod(copy, 0o755)
    r = run(copy, "doctor")
    words = "error while loading shared libraries: "
    expect(r.status == 127 and not r.out and words + missing in r.err, r)
    with open(os.path.join(SOURCE, "man", "doctor.roff"), encoding="utf-8") as file:
        manual = file.read()
    expect(words + "libZydis.so." in manual and "status 127" in manual, manual)


@claim
def the_decoder_is_the_only_library_beside_libc():
    """In a program that `make` builds, as the manual says."""
    options = json.loads(run(need("meson"), "introspect", "--buildoptions", BUILD, check=True).out)
    if IS_SANITIZED or not {o["name"]: o["value"] for o in options}["fast_start"]:
        raise Skip("this build is linked in another way")
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run(need("readelf"), "-dW", CAIRN, check=True).out)
    expect(
        "libc.so.6" in needed
        and all(re.match(r"libZydis\.|libc\.|ld-linux", name) for name in needed), needed)


if __name__ == "__main__":
    main()
