#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn unwind check: rows that the instructions contradict are told, and only those."""

import json

from claims import cairn, claim, claim_each_of_many, compile_c, expect, main

TRUE_ROWS = """\
#include <alloca.h>
#include <stdlib.h>
extern int use(void *p, int n);
int leaf(int x) { return x * 3; }
int kept(int a, int b) { int c = use(&a, b); return use(&c, a) + c; }
int variable(int n) { char *p = alloca(n); return use(p, n); }
int ends(int n) { if (use(&n, 1)) abort(); return use(&n, 2); }
int many(int a, int b, int c, int d, int e, int f, int g, int h) { return use(&h, a + b + c + d + e + f + g); }
int outer(int n) { return many(n, 1, 2, 3, 4, 5, 6, n) + 1; }
int use(void *p, int n) { static volatile int sink; sink += n; return *(volatile char *)p; }
int main(int argc, char **argv) { return outer(argc) + variable(argc) + kept(argc, 2) + ends(argc) + leaf(argc); }
"""
FALSE_ROW = """\
__asm__(".text\\n.globl forgets\\n.type forgets,@function\\nforgets:\\n.cfi_startproc\\npush %rbx\\nnop\\npop %rbx\\nret\\n"
        ".cfi_endproc\\n.size forgets,.-forgets\\n"
        ".globl tells\\n.type tells,@function\\ntells:\\n.cfi_startproc\\npush %rbx\\n.cfi_adjust_cfa_offset 8\\n"
        "sub $0x20,%rsp\\n.cfi_adjust_cfa_offset 32\\nlea 0x20(%rsp),%rsp\\n.cfi_adjust_cfa_offset 32\\npop %rbx\\nret\\n"
        ".cfi_endproc\\n.size tells,.-tells\\n");
int main(void) { return 0; }
"""

KEPT = """\
__asm__(".text\\n.globl silent\\n.type silent,@function\\nsilent:\\n.cfi_startproc\\nmov %rdi,%rax\\nxor %esi,%ebx\\nmov (%rdi),%r12\\n"
        "andn %rax,%r12,%r12\\nmov (%rsi),%r13\\nret\\n.cfi_endproc\\n.size silent,.-silent\\n"
        ".globl tail\\n.type tail,@function\\ntail:\\n.cfi_startproc\\nxor %ebp,%ebp\\njmp silent\\n.cfi_endproc\\n.size tail,.-tail\\n"
        ".globl borrows\\n.type borrows,@function\\nborrows:\\n.cfi_startproc\\nmov %rbx,%r8\\nxor %ebx,%ebx\\nmov %r8,%rbx\\n"
        "xchg %rbx,%rdi\\ncpuid\\nxchg %rbx,%rdi\\nnot %rbp\\nnot %rbp\\nret\\n.cfi_endproc\\n.size borrows,.-borrows\\n");
int main(void) { return 0; }
"""


@claim_each_of_many("gcc", "clang")
def what_compilers_write_has_no_disagreement(compiler):
    for name, flags in (("o0", ("-O0",)), ("o2", ("-O2", "-fno-inline")),
                        ("fp", ("-O2", "-fno-omit-frame-pointer"))):
        r = cairn("unwind", "check", compile_c("true_" + name, TRUE_ROWS, compiler, flags))
        expect(r.status == 0 and "0 disagreements" in r.out, r)


@claim
def rows_that_the_instructions_contradict_are_told_where_they_begin():
    r = cairn("unwind", "check", compile_c("false_row", FALSE_ROW, flags=("-O2",)))
    expect(r.status == 1, r)
    expect("forgets+0x1: the row says rsp+8, the instructions rsp+16" in r.out, r)
    expect(
        "tells+0xa: the row says rsp+80, the instructions rsp+16" in r.out
        and "2 disagreements" in r.out, r)


@claim
def registers_that_are_overwritten_without_a_word_and_not_restored_at_a_return_are_told():
    path = compile_c("kept", KEPT, flags=("-O2",))
    r = cairn("unwind", "check", path)
    expect(r.status == 1, r)
    told = [line.split(maxsplit=1)[1] for line in r.out.splitlines() if "overwrite" in line]
    expect(len(told) == 3, r)
    for text, name in zip(told,
                          ("silent+0x10: the row leaves rbx", "silent+0x10: the row leaves r12",
                           "tail+0x2: the row leaves rbp")):
        expect(text.startswith(name + " as it was, the instructions overwrite it (at "), r)
    # What came from memory, and what was put back, is not told.
    expect("r13" not in r.out and "borrows" not in r.out and "3 disagreements" in r.out, r)
    r = cairn("unwind", "check", "--json", path)
    first = json.loads(r.out.splitlines()[0])
    expect(
        first["against"] == "registers" and first["register"] == "rbx"
        and int(first["from"], 16) + 13 == int(first["at"], 16), r)


@claim
def the_rows_that_are_used_have_them_lost():
    path = compile_c("kept_rows", KEPT, flags=("-O2",))
    rows = cairn("unwind", "dump", path, check=True).out
    expect("rbx:lost" in rows and "r12:lost" in rows and "r13:lost" in rows and "rbp:lost" in rows,
           rows)
    expect(
        "lost" not in cairn("unwind", "dump", compile_c("kept_not", TRUE_ROWS, flags=("-O2",)),
                            check=True).out, "nothing else")


@claim
def json_has_each_disagreement_and_the_counts():
    r = cairn("unwind", "check", "--json", compile_c("false_row_json", FALSE_ROW, flags=("-O2",)))
    rows = [json.loads(line) for line in r.out.splitlines()]
    expect([row["function"] for row in rows[:-1]] == ["forgets", "tells"], r)
    expect(
        rows[-1]["disagreements"] == 2 and 0 < rows[-1]["followed_bytes"] <= rows[-1]["text_bytes"],
        r)


@claim
def frame_pointers_are_there_when_the_compiler_keeps_them():
    share = []
    for name, flag in (("with", "-fno-omit-frame-pointer"), ("without", "-fomit-frame-pointer")):
        r = cairn("unwind", "check", "--json",
                  compile_c("pointers_" + name, TRUE_ROWS, flags=("-O2", "-fno-inline", flag)))
        counts = json.loads(r.out.splitlines()[-1])
        share.append(counts["frame_pointer_bytes"] / counts["text_bytes"])
    expect(share[0] > 2 * share[1], share)


@claim
def our_sframe_agrees_with_the_rows_that_it_was_made_of():
    path = compile_c("embedded", TRUE_ROWS, flags=("-O2",))
    for version in ("2", "3"):
        out = path + ".sframe" + version
        cairn("unwind", "encode", "--embed", "--sframe", version, path, "-o", out, check=True)
        r = cairn("unwind", "check", "--json", out, check=True)
        expect(json.loads(r.out.splitlines()[-1])["sframe_bytes"] > 0, r)


main()
