# SPDX-License-Identifier: BSD-2-Clause
"""A made-up kernel: its vmlinux, a module, and the proc and sysfs of a system where they run."""
import os
import shutil
import struct

from claims import cairn, compile_c, path_of, run, write

RELEASE = "6.1.0-99-test"
SLIDE = 0x12400000
MODULE_TEXT, MODULE_EXIT, MODULE_INIT = 0xffffffffc03a1000, 0xffffffffc03a8040, 0xffffffffc03ad000
# weigh() is inlined in two functions that stay, and in one that the kernel frees.
PROGRAM = """\
#define INIT __attribute__((section(".init.text"), noinline))
int sink[4];
__attribute__((noinline)) int mix(int a, long b) { __asm__ volatile("" : "+r"(a)); return a + (int)b; }
static inline __attribute__((always_inline)) int weigh(int size, int step)
{
	__asm__ volatile("" : "+r"(size), "+r"(step));
	return mix(size, step) * step;
}
__attribute__((noinline)) int first(int n) { return weigh(n, n + 5); }
__attribute__((noinline)) int second(int n) { return weigh(n * 3, 7); }
INIT int start(int n) { return weigh(n + 1, 9); }
#define FILLER(n) __attribute__((noinline)) int filler_##n(int a) { return mix(a, n) + n; }
FILLER(1) FILLER(2) FILLER(3) FILLER(4) FILLER(5) FILLER(6) FILLER(7) FILLER(8)
"""
MODULE = PROGRAM + """\
__attribute__((section(".exit.text"), noinline)) int stop(int n) { return weigh(n, 4) + 1; }
__attribute__((section(".modinfo"))) const char about[] = "name=sample";
"""
LINK = (
    "-O2", "-g", "-nostdlib", "-static", "-fno-pic", "-no-pie",
    "-mcmodel=kernel", "-fno-asynchronous-unwind-tables",
    "-Wl,--build-id,-e,first",
    "-Wl,-Ttext=0xffffffff81000000,--section-start=.init.text=0xffffffff82000000",
    "-Wl,--section-start=.note.gnu.build-id=0xffffffff81800000",
    "-Wl,-Tdata=0xffffffff81900000,-Tbss=0xffffffff81a00000")


def symbols(path):
    """[(address, type, name)] of the code, by nm."""
    found = []
    for line in run("nm", "-n", path, check=True).lines():
        words = line.split()
        if len(words) == 3 and words[1] in "tTwW":
            found.append((int(words[0], 16), words[1], words[2]))
    return found


def build_id(path):
    return run("readelf", "-n", path,
               check=True).out.split("Build ID: ")[1].split()[0]


def notes_of(path, name):
    out = path_of("notes.bin")
    run("objcopy",
        "--dump-section",
        ".note.gnu.build-id=" + out,
        path,
        path_of("unused"),
        check=True)
    os.makedirs(os.path.dirname(name), exist_ok=True)
    shutil.copy(out, name)


def put(root, name, text):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path, text)


def kallsyms(vmlinux, slide, more=""):
    lines = [
        "0000000000000000 A fixed_percpu_data",
        f"{0xffffffff81000000 + slide:016x} T _text",
        f"{0xffffffff81000000 + slide:016x} T _stext"
    ]
    lines += [
        f"{at + slide:016x} {kind} {name}"
        for at, kind, name in symbols(vmlinux)
    ]
    lines += [
        f"{0xffffffff81001000 + slide:016x} T _etext",
        f"{0xffffffff82000000 + slide:016x} T _sinittext",
        f"{0xffffffff82001000 + slide:016x} T _einittext"
    ]
    return "\n".join(lines) + "\n" + more


def with_btf(path, name):
    """(@path with .BTF, as its kernel shows it; the bytes of that)"""
    btf, made = path_of(name + ".btf"), path_of(name)
    cairn("btf", "encode", path, "-o", btf, check=True)
    run("objcopy", "--add-section", ".BTF=" + btf, path, made, check=True)
    with open(btf, "rb") as file:
        return made, file.read()


def kcore(root, vmlinux_path, slide, change=lambda code: code):
    """The memory of the kernel: the code of a vmlinux, where it was loaded."""
    code = path_of("text.bin")
    run("objcopy", "--dump-section", ".text=" + code, vmlinux_path, path_of("unused"), check=True)
    with open(code, "rb") as file:
        text = change(bytearray(file.read()))
    text += bytes(0x1000 - len(text))
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64,
                                                      56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 7, 0x1000, 0xffffffff81000000 + slide, 0, len(text),
                          len(text), 0x1000)
    path = os.path.join(root, "proc/kcore")
    with open(path, "wb") as file:
        file.write((head + segment).ljust(0x1000, b"\0") + bytes(text))


def vmlinux():
    return compile_c("vmlinux", PROGRAM, flags=LINK)


def system(name, slide=SLIDE):
    """A root in which that kernel runs, with nothing that describes it."""
    root = path_of(name)
    put(root, "proc/sys/kernel/osrelease", RELEASE + "\n")
    put(root, "proc/sys/kernel/kptr_restrict", "1\n")
    put(root, "proc/kallsyms", kallsyms(vmlinux(), slide))
    notes_of(vmlinux(), os.path.join(root, "sys/kernel/notes"))
    return root


def module(root):
    """A module file in @root, loaded; sections where they are not in the file."""
    obj, ko = compile_c("sample",
                        MODULE,
                        flags=("-O2", "-g", "-c", "-fno-pic",
                               "-mcmodel=kernel",
                               "-fno-asynchronous-unwind-tables")), None
    folder = os.path.join(root, "lib/modules", RELEASE)
    os.makedirs(os.path.join(folder, "kernel"), exist_ok=True)
    ko = os.path.join(folder, "kernel/a-sample.ko")
    run("ld", "-r", "--build-id", "-o", ko, obj, check=True)
    put(root, f"lib/modules/{RELEASE}/modules.dep",
        "kernel/b.ko:\nkernel/a-sample.ko: kernel/b.ko\n")
    notes_of(
        ko, os.path.join(root, "sys/module/a_sample/notes/.note.gnu.build-id"))
    where = {
        ".text": MODULE_TEXT,
        ".exit.text": MODULE_EXIT,
        ".init.text": MODULE_INIT
    }
    for name, at in where.items():
        put(root, "sys/module/a_sample/sections/" + name, f"0x{at:016x}\n")
    lines = []
    for line in run("readelf", "-sW", ko, check=True).lines():
        words = line.split()
        if len(words) == 8 and words[3] == "FUNC":
            lines.append((words[7], int(words[1], 16), int(words[6])))
    sections = [
        line.split("]")[1].split()[0]
        for line in run("readelf", "-SW", ko, check=True).lines()
        if line.strip().startswith("[") and "]" in line and "NULL" not in line
        and "Nr" not in line
    ]
    more = "".join(f"{where[sections[i - 1]] + at:016x} t {name}\t[a_sample]\n"
                   for name, at, i in lines)
    put(root, "proc/kallsyms", kallsyms(vmlinux(), SLIDE, more))
    return ko, where
