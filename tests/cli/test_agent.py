#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn code run: what the agent registers of programs that know nothing of it. The oracles: maps,
readelf, libgcc's unwinder."""

import os
import re
import select
import signal
import struct
import subprocess
import zlib

from claims import (ANY_ORDER, CAIRN, Skip, cairn, claim, compile_c, expect, folder, main, need,
                    need_root, run)
from registry import Process


class Child:
    """A program below the agent that says a line when it is ready, and goes on when it gets one."""

    def __init__(self, *command, **kwargs):
        self.proc = subprocess.Popen([CAIRN, "code", "run", "--", *map(str, command)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, **kwargs)
        self.said = None

    def __enter__(self):
        self.wait()
        self.view = Process(self.proc.pid)
        return self

    def wait(self):
        ready, _, _ = select.select([self.proc.stdout], [], [], 60)
        self.said = self.proc.stdout.readline().strip() if ready else ""
        expect(self.said, f"{self.proc.args} said nothing: {self.proc.poll()}")
        return self.said

    def go_on(self):
        self.proc.stdin.write("\n")
        self.proc.stdin.flush()
        return self.wait()

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.communicate()
        self.view.close()


def program(name, text, *flags):
    return compile_c(
        name, "#include <stdio.h>\nstatic void pause_here(const char *said)\n{\n"
        "\tchar line[64];\n\tputs(said);\n\tfflush(stdout);\n\tif (!fgets(line, sizeof(line), stdin))\n"
        "\t\tputs(\"end\");\n}\n" + text, "gcc", ("-O1", "-D_GNU_SOURCE", *flags))


def library(name, text, *flags):
    source, out = os.path.join(folder(), name + ".c"), os.path.join(folder(), name)
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    run("gcc", "-shared", "-fPIC", "-O1", "-Wl,--build-id", "-o", out, source, *flags, check=True)
    return out


def build_id(path):
    found = re.search(r"Build ID: (\w+)", run("readelf", "-n", path, check=True).out)
    return found.group(1) if found else ""


def debug_link(path):
    found = re.search(r"\[ *0\]\s+(\S+)", run("readelf", "-p", ".gnu_debuglink", path).out)
    return found.group(1) if found else ""


def texts_of(path):
    """(address, size in memory) of its executable segments."""
    headers = re.findall(r"^\s+LOAD\s+\S+ (0x\w+) \S+ \S+ (0x\w+) ([RWE ]{3})",
                         run("readelf", "-Wl", path, check=True).out, re.M)
    return [(int(at, 16), int(size, 16)) for at, size, flags in headers if "E" in flags]


def check_objects(view):
    entries = [e for e in view.entries() if e["option"] == 1]
    mapped = {}
    for lo, _, permissions, path in view.maps():
        if "x" in permissions and path.startswith("/"):
            mapped.setdefault(os.path.realpath(path), []).append(lo)
    expect({os.path.realpath(e["path"])
            for e in entries
            if e["path"]} == set(mapped), entries, mapped)
    for e in entries:
        path = e["path"]
        if not path:
            expect(any(lo <= e["lo"] < hi and name == "[vdso]" for lo, hi, _, name in view.maps()),
                   "no path", e)
            continue
        expect(e["build_id"] == build_id(path) and e["link"] == debug_link(path), e)
        expect((e["lo"] - e["elf"], e["hi"] - e["lo"])
               in [(at - at0(path), size) for at, size in texts_of(path)], e)
        expect(any(e["lo"] & -4096 == lo for lo in mapped[os.path.realpath(path)]), e, mapped)
    return entries


def at0(path):
    first = re.search(r"^\s+LOAD\s+\S+ (0x\w+)", run("readelf", "-Wl", path, check=True).out, re.M)
    return int(first.group(1), 16)


@claim
def every_object_of_a_program_is_registered_as_readelf_and_maps_have_it():
    with Child("python3", "-c",
               "import ssl, sqlite3; print('ready', flush=True); input()") as child:
        expect(len(check_objects(child.view)) > 12, child.view.entries())
        expect(len(child.view.registries()) == 1, "one registry")


@claim
def the_checksum_of_a_debug_link_is_that_of_the_file():
    need("objcopy")
    path = program("linked", "int main(void) { pause_here(\"ready\"); return 0; }\n", "-g")
    debug = path + ".debug"
    run("objcopy", "--only-keep-debug", path, debug, check=True)
    run("objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}", path, check=True)
    with Child(path) as child, open(debug, "rb") as file:
        found = child.view.objects()[path]
        expect(found["link"] == os.path.basename(debug) and found["crc"] == zlib.crc32(file.read()),
               found)


@claim
def an_object_with_two_ranges_of_code_has_two_registrations():
    path = library(
        "two.so",
        '__asm__(".section .far,\\"ax\\",@progbits\\n.globl far\\nfar: ret\\n.text\\n");\n'
        "int near(void) { return 1; }\n", "-Wl,--section-start=.far=0x400000",
        "-Wl,-z,separate-code")
    expect(len(texts_of(path)) == 2, texts_of(path))
    user = program(
        "two",
        f'#include <dlfcn.h>\nint main(void) {{ if (!dlopen("{path}", RTLD_NOW)) return 1; pause_here("ready"); }}\n'
    )
    with Child(user) as child:
        check_objects(child.view)
        expect(
            len([e for e in child.view.entries() if e.get("path") == path]) == 2,
            child.view.entries())


@claim
def objects_that_are_loaded_later_are_noticed_and_those_that_go_leave():
    inner = library("inner.so", "int inner(void) { return 3; }\n")
    outer = library("outer.so", "int inner(void);\nint outer(void) { return inner(); }\n", inner,
                    f"-Wl,-rpath,{folder()}")
    user = program(
        "later", "#include <dlfcn.h>\nint main(void)\n{\n"
        "\tfor (int i = 0; i < 3; i++) {\n\t\tpause_here(\"without\");\n"
        f"\t\tvoid *o = dlopen(\"{outer}\", RTLD_NOW | RTLD_LOCAL);\n"
        "\t\tif (!o)\n\t\t\treturn 1;\n\t\tpause_here(\"with\");\n\t\tdlclose(o);\n\t}\n}\n")
    with Child(user) as child:
        for _ in range(3):
            expect(child.said == "without", child.said)
            expect(not {inner, outer} & set(child.view.objects()), child.view.objects())
            expect(child.go_on() == "with", child.said)
            expect({inner, outer} <= set(child.view.objects()), child.view.objects())
            check_objects(child.view)
            if _ < 2:
                child.go_on()


@claim
def an_object_that_is_rebuilt_and_loaded_again_is_another():
    path = os.path.join(folder(), "again.so")
    user = program(
        "again", "#include <dlfcn.h>\nint main(void)\n{\n\tfor (;;) {\n"
        f"\t\tvoid *o = dlopen(\"{path}\", RTLD_NOW);\n\t\tpause_here(\"with\");\n\t\tdlclose(o);\n"
        "\t\tpause_here(\"without\");\n\t}\n}\n")
    ids = set()
    library("again.so", "int again(void) { return 0; }\n")
    with Child(user) as child:
        for i in range(1, 4):
            found = child.view.objects()[path]
            expect(found["build_id"] == build_id(path), found)
            ids.add(found["build_id"])
            child.go_on()
            os.unlink(path)
            library("again.so", f"int again(void) {{ return {i}; }}\n")
            child.go_on()
    expect(len(ids) == 3, ids)


@claim
def a_name_that_means_another_file_by_now_is_not_told():
    # ld.so as the command: /proc/self/exe is the loader, not the program.
    path = program("direct", "int main(void) { pause_here(\"ready\"); return 0; }\n")
    with Child("/lib64/ld-linux-x86-64.so.2", path) as child:
        own = [e for e in child.view.entries() if e.get("build_id") == build_id(path)]
        expect(len(own) == 1 and own[0]["path"] in ("", path), own)


# Machine code whose CFI the test writes: a caller of a callback with 16 bytes more on the stack.
FRAMES = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

extern void __register_frame(void *), __deregister_frame(void *);
extern void __register_frame_info(const void *, void *), *__deregister_frame_info(const void *);
extern void __register_frame_table(void *);

static const unsigned char code[] = {0x48, 0x83, 0xec, 24, 0xff, 0xd7, 0x48, 0x83, 0xc4, 24, 0xc3};
static uint8_t *area, *unwind;

/* Returns where the FDE is; the CIE when it is the first. */
static uint8_t *put_cie(uint8_t **at)
{
	static const uint8_t cie[] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, 12, 7, 8, 0x90, 1, 0, 0};
	return *at = (uint8_t *)mempcpy(*at, cie, sizeof(cie)) - sizeof(cie), *at;
}

static uint8_t *put_fde(uint8_t *at, const uint8_t *cie, uint64_t lo, uint64_t n)
{
	static const uint8_t program[] = {0, 0x44, 14, 32, 0x46, 14, 8};
	uint32_t length = 4 + 16 + sizeof(program) + 1, back = (uint32_t)(at + 4 - cie);
	memcpy(at, &length, 4);
	memcpy(at + 4, &back, 4);
	memcpy(at + 8, &lo, 8);
	memcpy(at + 16, &n, 8);
	memcpy(at + 24, program, sizeof(program));
	at[24 + sizeof(program)] = 0;
	return at + 4 + length;
}

/* A section for functions at these addresses. */
static uint8_t *put_section(uint8_t *at, const int *offs, int n)
{
	uint8_t *begin = at;
	put_cie(&at);
	at += 24;
	for (int i = 0; i < n; i++) {
		memcpy(area + offs[i], code, sizeof(code));
		at = put_fde(at, begin, (uint64_t)(area + offs[i]), sizeof(code));
	}
	memset(at, 0, 4);
	return begin;
}

static int seen;
static _Unwind_Reason_Code look(struct _Unwind_Context *c, void *end)
{
	uintptr_t ip = _Unwind_GetIP(c);
	seen |= ip >= (uintptr_t)area && ip < (uintptr_t)area + 4096 ? 1 : 0;
	seen |= seen & 1 && ip >= (uintptr_t)end && ip < (uintptr_t)end + 4096 ? 2 : 0;
	return _URC_NO_REASON;
}

int main(int argc, char **argv);
static void unwind_here(void) { _Unwind_Backtrace(look, (void *)main); }

/* 3: the unwinder went through the function and found this program after it. */
static int unwinds(int off)
{
	seen = 0;
	((void (*)(void (*)(void)))(area + off))(unwind_here);
	return seen;
}

static void setup(void)
{
	area = mmap((void *)0x200000000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	unwind = calloc(1, 8192);
}
"""


def frames_program(name, text):
    return program(
        name,
        FRAMES + "int main(int argc, char **argv)\n{\n\tsetup();\n" + text + "\treturn 0;\n}\n",
        "-funwind-tables", "-Wno-builtin-declaration-mismatch")


AREA, N = 0x200000000000, 11


def ranges(child):
    return [(e["lo"] - AREA, e["hi"] - AREA)
            for e in child.view.regions()
            if e["lo"] >= AREA and e["hi"] <= AREA + 4096]


@claim
def a_section_that_is_registered_is_a_region_and_still_unwinds():
    path = frames_program(
        "section", "\tuint8_t *s = put_section(unwind, (int[]){64, 128}, 2);\n"
        "\t__register_frame(s);\n\tpause_here(unwinds(64) == 3 && unwinds(128) == 3 ? \"unwinds\" : \"does not\");\n"
        "\t__deregister_frame(s);\n\tpause_here(unwinds(64) & 2 ? \"unwinds\" : \"gone\");\n")
    with Child(path) as child:
        expect(child.said == "unwinds" and ranges(child) == [(64, 128 + N)], child.said,
               ranges(child))
        region = [e for e in child.view.regions() if e["lo"] == AREA + 64][0]
        data = child.view.read(region["unwind"], region["unwind_end"] - region["unwind"])
        expect(
            region["kind"] == 1 and data.endswith(b"\0\0\0\0")
            and struct.unpack_from("<Q", data, 24 + 8)[0] == AREA + 64, data)
        expect(child.go_on() == "gone" and not ranges(child), child.said, ranges(child))


@claim
def sections_whose_functions_lie_between_one_another_are_registered_by_function():
    path = frames_program(
        "mixed", "\tuint8_t *a = put_section(unwind, (int[]){64, 256}, 2);\n"
        "\tuint8_t *b = put_section(unwind + 1024, (int[]){512, 128, 1024}, 3);\n"
        "\t__register_frame(a);\n\t__register_frame(b);\n"
        "\tpause_here(\"both\");\n"
        "\t__deregister_frame(b);\n\tpause_here(\"one\");\n\t__deregister_frame(a);\n\tpause_here(\"none\");\n"
    )
    with Child(path) as child:
        # The second one overlaps the first: what does not is registered alone. libgcc takes a
        # section for one range, too.
        expect(
            child.said == "both" and ranges(child) == [(64, 256 + N), (512, 512 + N),
                                                       (1024, 1024 + N)], ranges(child))
        child.go_on()
        expect(ranges(child) == [(64, 256 + N)], ranges(child))
        child.go_on()
        expect(not ranges(child), ranges(child))


@claim
def the_forms_with_info_and_tables_do_the_same():
    path = frames_program(
        "forms", "\tvoid *object[8] = {0};\n\tuint8_t *a = put_section(unwind, (int[]){64}, 1);\n"
        "\tvoid *table[] = {put_section(unwind + 1024, (int[]){512}, 1), put_section(unwind + 2048, (int[]){1024}, 1), NULL};\n"
        "\t__register_frame_info(a, object);\n\t__register_frame_table(table);\n"
        "\tpause_here(unwinds(64) == 3 && unwinds(1024) == 3 ? \"unwinds\" : \"does not\");\n"
        "\tint same = __deregister_frame_info(a) == (void *)object;\n\tpause_here(same ? \"its own\" : \"another\");\n"
        "\t__deregister_frame(table);\n\tpause_here(\"none\");\n")
    with Child(path) as child:
        expect(
            child.said == "unwinds" and ranges(child) == [(64, 64 + N), (512, 512 + N),
                                                          (1024, 1024 + N)], ranges(child))
        expect(child.go_on() == "its own" and ranges(child) == [(512, 512 + N), (1024, 1024 + N)],
               child.said, ranges(child))
        child.go_on()
        expect(not ranges(child), ranges(child))


@claim
def code_that_replaces_code_at_its_place_replaces_its_registration():
    path = frames_program(
        "replaced",
        "\t__register_frame(put_section(unwind, (int[]){64}, 1));\n\tpause_here(\"first\");\n"
        "\t__register_frame(put_section(unwind + 1024, (int[]){64}, 1));\n\tpause_here(\"second\");\n"
    )
    with Child(path) as child:
        first = child.view.regions()
        child.go_on()
        second = child.view.regions()
        expect([e["lo"] for e in first] == [e["lo"] for e in second]
               and first[0]["unwind"] + 1024 == second[0]["unwind"]
               and first[0]["epoch"] < second[0]["epoch"], first, second)


@claim
def llvms_unwinder_is_given_single_fdes():
    found = [
        p for p in ("/usr/lib/x86_64-linux-gnu/libunwind.so.1",
                    "/usr/lib/llvm-14/lib/libunwind.so.1") if os.path.exists(p)
    ]
    if not found:
        raise Skip("libunwind of LLVM is not installed (libunwind-14)")
    path = program(
        "single", FRAMES + "int main(int argc, char **argv)\n{\n\tsetup();\n"
        "\tuint8_t *s = put_section(unwind, (int[]){64, 128}, 2);\n"
        "\t__register_frame(s + 24 + 32);\n\tpause_here(\"one\");\n\t__register_frame(s + 24);\n\tpause_here(\"two\");\n"
        "\t__deregister_frame(s + 24 + 32);\n\tpause_here(\"one\");\n\treturn 0;\n}\n",
        "-funwind-tables", "-Wno-builtin-declaration-mismatch", "-Wl,--no-as-needed", found[0])
    with Child(path) as child:
        expect(ranges(child) == [(128, 128 + N)], ranges(child))
        region = child.view.regions()[0]
        expect(child.view.read(region["unwind"], 12)[8:] == b"\1zR\0", "its CIE is with it", region)
        child.go_on()
        expect(ranges(child) == [(64, 64 + N), (128, 128 + N)], ranges(child))
        child.go_on()
        expect(ranges(child) == [(64, 64 + N)], ranges(child))


@claim
def a_plug_in_reaches_the_unwinder_that_only_it_has_loaded():
    plugin = library(
        "plugin.so",
        FRAMES.replace("(void *)main", "(void *)work").replace("int main(int argc, char **argv);",
                                                               "int work(void);") +
        "int work(void)\n{\n\tsetup();\n\t__register_frame(put_section(unwind, (int[]){64}, 1));\n\treturn unwinds(64);\n}\n",
        "-funwind-tables", "-Wno-builtin-declaration-mismatch", "-Wl,--no-as-needed", "-lgcc_s",
        "-D_GNU_SOURCE")
    user = program(
        "with_plugin", "#include <dlfcn.h>\nint main(void)\n{\n"
        f"\tvoid *h = dlopen(\"{plugin}\", RTLD_NOW | RTLD_LOCAL);\n\tint (*f)(void) = h ? dlsym(h, \"work\") : 0;\n"
        "\tpause_here(f && f() == 3 ? \"unwinds\" : \"does not\");\n}\n")
    with Child(user) as child:
        expect(child.said == "unwinds" and ranges(child) == [(64, 64 + N)], child.said,
               child.view.regions())


# A JIT in a library, which calls GDB's function through its PLT; and the function that GDB would
# stop in is its own.
GDB_JIT = r"""
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct entry { struct entry *next, *prev; const void *symfile; uint64_t n; };
struct { uint32_t version, action; struct entry *relevant, *first; } __jit_debug_descriptor = {1, 0, 0, 0};
int n_stops;
__attribute__((noinline)) void __jit_debug_register_code(void) { n_stops++; }

static struct { Elf64_Ehdr head; Elf64_Shdr s[5]; Elf64_Sym sym[3]; uint64_t cfi[7]; char names[64]; } file;
static struct entry entry = {.symfile = &file, .n = sizeof(file)};
#define OFF(part) ((uint64_t)((char *)&file.part - (char *)&file))

void *put(void)
{
	static const unsigned char cie[] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, 12, 7, 8, 0x90, 1, 0, 0};
	uint64_t text = (uint64_t)mmap((void *)0x200000000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	uint64_t size = 200;
	uint32_t fde[] = {24, 28};
	memcpy(file.head.e_ident, "\177ELF\2\1\1", 7);
	file.head.e_type = ET_REL; file.head.e_shoff = OFF(s); file.head.e_shentsize = sizeof(Elf64_Shdr); file.head.e_shnum = 5; file.head.e_shstrndx = 4;
	memcpy(file.names, "\0.eh_frame\0first\0second", 24);
	file.s[1] = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = text, .sh_size = size};
	file.s[2] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_name = 1, .sh_flags = SHF_ALLOC, .sh_offset = OFF(cfi), .sh_size = sizeof(file.cfi)};
	file.s[3] = (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_offset = OFF(sym), .sh_size = sizeof(file.sym), .sh_link = 4};
	file.s[4] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = OFF(names), .sh_size = sizeof(file.names)};
	file.sym[1] = (Elf64_Sym){.st_name = 17, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 100, .st_size = 100};
	file.sym[2] = (Elf64_Sym){.st_name = 11, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 0, .st_size = 100};
	memcpy(file.cfi, cie, sizeof(cie));
	memcpy((char *)file.cfi + 24, fde, 8);
	memcpy((char *)file.cfi + 32, &text, 8);
	memcpy((char *)file.cfi + 40, &size, 8);
	__jit_debug_descriptor.first = __jit_debug_descriptor.relevant = &entry;
	__jit_debug_descriptor.action = 1;
	__jit_debug_register_code();
	return (void *)text;
}

void take_away(void)
{
	__jit_debug_descriptor.first = 0;
	__jit_debug_descriptor.action = 2;
	__jit_debug_register_code();
}
"""


@claim
def a_symbol_file_for_gdb_is_a_region_with_its_names():
    plugin = library("gdb_jit.so", GDB_JIT, "-D_GNU_SOURCE")
    user = program(
        "with_gdb_jit", "#include <dlfcn.h>\nint main(void)\n{\n"
        f"\tvoid *h = dlopen(\"{plugin}\", RTLD_NOW | RTLD_LOCAL);\n\tvoid *(*put)(void) = dlsym(h, \"put\");\n"
        "\tvoid (*take)(void) = dlsym(h, \"take_away\");\n\tint *n = dlsym(h, \"n_stops\");\n"
        "\tput();\n\tpause_here(*n == 1 ? \"forwarded\" : \"lost\");\n\ttake();\n\tpause_here(*n == 2 ? \"forwarded\" : \"lost\");\n}\n"
    )
    with Child(user) as child:
        expect(child.said == "forwarded" and ranges(child) == [(0, 200)], child.said,
               child.view.regions())
        region = [e for e in child.view.regions() if e["lo"] == AREA][0]
        expect(region["kind"] == 1 and child.view.read(region["unwind"], 12)[8:] == b"\1zR\0",
               region)
        used = struct.unpack("<Q", child.view.read(region["symbols"] + 8, 8))[0]
        symbols = [
            struct.unpack("<IIQIIQ", child.view.read(region["symbols"] + 32 + at, 32))
            for at in range(0, used, 32)
        ]
        expect([(off, size, child.view.text(name))
                for size, off, name, *_ in symbols] == [(0, 100, "first"), (100, 100, "second")],
               symbols)
        r = cairn("code", child.proc.pid)
        expect(r.status == 0 and f"{AREA:x}" in r.out, r)
        r = cairn("addr", child.proc.pid, f"{AREA + 150:#x}")
        expect("second" in r.out, r)
        expect(child.go_on() == "forwarded" and not ranges(child), child.said, child.view.regions())


@claim
def luajit_is_registered_as_it_hands_its_code_to_the_unwinder():
    need("luajit")
    script = "local s = 0; for i = 1, 1e7 do s = s + i % 7 end; print(s); io.flush(); io.read()"
    with Child("luajit", "-e", script) as child:
        regions = child.view.regions()
        mapped = [(lo, hi)
                  for lo, hi, permissions, path in child.view.maps()
                  if "x" in permissions and not path]
        expect(
            regions
            and all(any(lo <= e["lo"] and e["hi"] <= hi for lo, hi in mapped) for e in regions),
            regions, mapped)


@claim
def a_child_has_a_copy_and_another_program_begins_anew():
    path = program(
        "forks", "#include <unistd.h>\n#include <sys/wait.h>\nint main(int argc, char **argv)\n{\n"
        "\tif (argc > 1) { pause_here(\"again\"); return 0; }\n"
        "\tif (fork() == 0) { char *args[] = {argv[0], \"x\", 0}; printf(\"%d\\n\", getpid()); pause_here(\"\"); execv(argv[0], args); }\n"
        "\twait(0);\n\treturn 0;\n}\n")
    with Child(path) as child:
        forked = Process(int(child.said))
        child.wait_blank = child.proc.stdout.readline()
        # noqa: E731
        strip = lambda view: [(e["lo"], e["path"], e["epoch"]) for e in view.entries()]
        expect(
            strip(forked) == strip(child.view) and strip(forked), strip(forked), strip(child.view))
        expect(child.go_on() == "again", child.said)
        # A descriptor of /proc/PID/mem stays with the memory that it was opened for.
        forked.close()
        forked = Process(forked.pid)
        check_objects(forked)
        expect(strip(forked) != strip(child.view), "the program was executed anew")
        forked.close()


@claim
def status_and_signals_are_those_of_the_command():
    for status in (0, 1, 7, 255):
        expect(cairn("code", "run", "--", "sh", "-c", f"exit {status}").status == status, status)
    expect(
        cairn("code", "run", "--", "sh", "-c", "kill -TERM $$").status == -signal.SIGTERM,
        "a signal")
    r = cairn("code", "run", "--", "sh", "-c", "echo out; echo err >&2")
    expect(r.out == "out\n" and r.err == "err\n", r)
    expect(cairn("code", "run", "/no/such/program").status == 2, "no program")
    expect(
        cairn("code", "run").status == 2 and cairn("code", "run", "--json", "true").status == 2,
        "usage")


@claim
def a_preloaded_library_of_the_user_stays_and_comes_first():
    other = library("other.so", "int other;\n")
    r = cairn("code", "run", "--", "sh", "-c", "echo $LD_PRELOAD",
              env=os.environ | {"LD_PRELOAD": other, "ASAN_OPTIONS": ANY_ORDER})
    expect(r.out.startswith(other + ":") and r.out.strip().endswith("libcairn-agent.so"), r)


@claim
def programs_that_do_not_load_it_are_said_so_and_run():
    static = compile_c("static", "int main(void) { return 3; }\n", "gcc", ("-static",))
    r = cairn("code", "run", "--", static)
    expect(
        r.status == 3
        and "static-gcc does not load the agent: it has no program interpreter" in r.err, r)
    script = os.path.join(folder(), "script")
    with open(script, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho $LD_PRELOAD\n")
    os.chmod(script, 0o755)
    r = cairn("code", "run", "--", script)
    expect("libcairn-agent" in r.out and not r.err, r)


@claim
def programs_that_gain_privileges_are_said_so():
    need_root()
    path = compile_c(
        "setuid",
        "#include <stdlib.h>\n#include <stdio.h>\nint main(void) { char *s = getenv(\"LD_PRELOAD\"); puts(s ? s : \"none\"); return 0; }\n",
        "gcc")
    os.chmod(folder(), 0o755)
    os.chown(path, 65534, 65534)
    os.chmod(path, 0o4755)
    r = cairn("code", "run", "--", path)
    expect("gains privileges" in r.err and r.status == 0, r)


@claim
def programs_of_musl_are_registered_too():
    need("musl-gcc")
    source, path = os.path.join(folder(), "musl.c"), os.path.join(folder(), "musl")
    with open(source, "w", encoding="utf-8") as file:
        file.write(
            "#include <stdio.h>\nint main(void) { puts(\"ready\"); fflush(stdout); getchar(); return 0; }\n"
        )
    run("musl-gcc", "-Wl,--build-id", "-o", path, source, check=True)
    with Child(path) as child:
        found = child.view.objects()
        expect(path in found and found[path]["build_id"] == build_id(path), found)


@claim
def exceptions_and_threads_go_on_as_before():
    need("g++")
    source, path = os.path.join(folder(), "throws.cc"), os.path.join(folder(), "throws")
    with open(source, "w", encoding="utf-8") as file:
        file.write(
            "#include <thread>\n#include <cstdio>\nstatic int n;\nstatic void f() { try { throw 1; } catch (int i) { n += i; } }\n"
            "int main() { std::thread a(f); a.join(); f(); printf(\"%d\\n\", n); }\n")
    run("g++", "-o", path, source, check=True)
    expect(cairn("code", "run", "--", path).out == "2\n", "throws")


main()
