#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hazards of a kernel and of a module: code on which a kprobe is refused, by the tables in the file.
tests/kernels/sites.py compares them with what running kernels refuse."""
from claims import cairn, claim, claim_each, compile_c, expect, main, path_of, run

# Each spot is a label, and has an entry in its table. Of a kernel the tables are between symbols, of
# a module they are sections.
PROGRAM = """\
#define TABLE(section, name, entry) \\
	".pushsection " section ",\\"aw\\"\\n.globl __start_" name "\\n__start_" name ":\\n" entry \\
	"\\n.globl __stop_" name "\\n__stop_" name ":\\n.popsection\\n"
__asm__(".pushsection .noinstr.text,\\"ax\\"\\n.globl __noinstr_text_start\\n"
	"__noinstr_text_start:\\n.popsection\\n");
int sink;
__attribute__((noinline)) void traced(void)
{
	__asm__ volatile(
		".globl spot_call\\nspot_call: .byte 0x0f,0x1f,0x44,0,0\\n"
		".globl spot_jump\\nspot_jump: .byte 0x66,0x90\\n"
		".globl spot_long\\nspot_long: .byte 0xe9,0,0,0,0\\n"
		".globl spot_static\\nspot_static: .byte 0xe8,0,0,0,0\\n"
		".globl spot_alternative\\nspot_alternative: .byte 0x48,0x89,0xd8,0x90\\n"
		TABLE("__mcount_loc", "mcount_loc", ".quad spot_call")
		TABLE("__jump_table", "__jump_table", ".long spot_jump - ., 0\\n.quad 0\\n"
						      ".long spot_long - ., 0\\n.quad 0")
		TABLE(".static_call_sites", "static_call_sites", ".long spot_static - ., 0")
		TABLE("_kprobe_blacklist", "kprobe_blacklist", ".quad refused")
		".pushsection .altinstructions,\\"a\\"\\n.globl __alt_instructions\\n"
		"__alt_instructions: .long spot_alternative - ., other - .\\n" FLAGS
		".byte 4, 3\\n.globl __alt_instructions_end\\n__alt_instructions_end:\\n.popsection\\n"
		".pushsection .altinstr_replacement,\\"ax\\"\\nother: .byte 0x90,0x90,0x90\\n.popsection\\n");
	sink = 1;
}
__attribute__((noinline)) void silent(void) { sink = 2; }
__attribute__((noinline)) void refused(void) { sink = 3; }
__attribute__((section(".noinstr.text"), noinline)) void noinstr(void) { sink = 4; }
__attribute__((section(".modinfo"), used)) const char about[] = "name=sample";
__asm__(".pushsection .noinstr.text,\\"ax\\"\\n.globl __noinstr_text_end\\n"
	"__noinstr_text_end:\\n.popsection\\n");
"""
FLAGS = {"6.1": '".word 7\\n"', "6.3": '".long 7\\n"'}
OPTIONS = ("-O2", "-g", "-fno-pic", "-mcmodel=kernel", "-fno-toplevel-reorder",
           "-fno-asynchronous-unwind-tables")


def build(kind, version="6.1"):
    flags = OPTIONS + (f"-DFLAGS={FLAGS[version]}", )
    if kind == "module":
        return compile_c("module" + version, PROGRAM, flags=flags + ("-c", ))
    return compile_c("kernel" + version,
                     PROGRAM,
                     flags=flags + ("-nostdlib", "-static", "-no-pie",
                                    "-Wl,-Ttext=0xffffffff81000000,-e,traced"))


def hazards(path):
    found = {}
    for h in cairn("sites", "--hazards", path, "--json", check=True).objects():
        found.setdefault(int(h["addr"], 16), h["hazard"])
    return found


def addresses(path, kind):
    """Of symbols; of a module as cairn lays its sections out."""
    if kind == "kernel":
        return {
            words[2]: int(words[0], 16)
            for words in map(str.split,
                             run("nm", path, check=True).lines())
            if len(words) == 3
        }
    found = {}
    for name in ("traced", "silent", "refused", "noinstr"):
        site = cairn("sites", path, name, "--json", "--no-cache",
                     check=True).objects()[0]
        found[name] = int(site["addr"], 16)
    offsets = {
        words[2]: int(words[0], 16)
        for words in map(str.split,
                         run("nm", path, check=True).lines())
        if len(words) == 3
    }
    for name in list(offsets):
        if name.startswith("spot_"):
            found[name] = found["traced"] + offsets[name] - offsets["traced"]
    return found


@claim_each("kernel", "module")
def code_that_a_kernel_refuses_to_probe_is_listed(kind):
    path = build(kind)
    at, found = addresses(path, kind), hazards(path)
    wanted = {
        at["spot_jump"]: "jump-label",
        at["spot_long"]: "jump-label",
        at["spot_static"]: "static-call",
        at["spot_alternative"] + 1: "alternative",
        at["refused"]: "kprobe-blacklist",
        at["noinstr"]: "kprobe-blacklist",
        at["silent"]: "notrace"
    }
    expect({a: found.get(a)
            for a in wanted} == wanted, {hex(a): h
                                         for a, h in found.items()}, at)
    expect(at["traced"] not in found and at["spot_call"] not in found, found)


@claim_each("6.1", "6.3")
def entries_of_alternatives_have_either_size(version):
    path = build("kernel", version)
    expect("alternative" in hazards(path).values(), hazards(path))


@claim
def sites_have_the_hazard_also_from_a_sidecar():
    path, made = build("kernel"), path_of("made.cairn")
    cairn("sidecar", path, "-o", made, check=True)
    for source in (path, made):
        for name, hazard in (("traced", None), ("silent", "notrace"),
                             ("refused", "kprobe-blacklist"),
                             ("noinstr", "kprobe-blacklist")):
            r = cairn("sites",
                      source,
                      name,
                      "--json",
                      "--no-cache",
                      check=True)
            expect([s["hazard"] for s in r.objects()] == [hazard], source,
                   name, r)


@claim
def each_hazard_is_explained():
    for word in ("kprobe-blacklist", "jump-label", "static-call", "notrace",
                 "alternative"):
        expect("kernel" in cairn("sites", "--explain", word, check=True).out,
               word)


if __name__ == "__main__":
    main()
