/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second opinion on sites: every function DIE of a file, found with libdw, nothing of Cairn's
 *
 *	dies FILE       (the file that has the DWARF)
 *
 * One line per DW_TAG_inlined_subroutine ("inlined") and per DW_TAG_subprogram with code ("body"):
 *
 *	KIND  DIE-OFFSET  ADDRESS  CODE  NAME  DECL-FILE  DECL-LINE  LINKAGE-NAME
 *
 * separated by tabs; offset and address in hexadecimal; CODE is 1 when the DIE has at least one
 * byte of code or an entry_pc, else 0; ADDRESS is entry_pc, or low_pc, or the start of the first
 * range that is not empty; - where there is none.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "units.h"

/* Deeper than any compiler nests; a deeper file ends the program with a message. */
#define DEPTH_MAX 4096

struct code {
	bool any;
	bool has_at;
	Dwarf_Addr at;
};

static void first_range(Dwarf_Die *die, struct code *code)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;

	while ((off = dwarf_ranges(die, off, &base, &lo, &hi)) > 0) {
		if (lo >= hi)
			continue;
		if (!code->has_at)
			code->at = lo;
		code->has_at = true;
		code->any = true;
	}
}

static struct code code_of(Dwarf_Die *die)
{
	struct code code = {0};
	Dwarf_Attribute attr;
	Dwarf_Addr entry;

	/* dwarf_entrypc() falls back to low_pc, which is not asked here. */
	if (dwarf_attr(die, DW_AT_entry_pc, &attr) && dwarf_entrypc(die, &entry) == 0) {
		code.any = code.has_at = true;
		code.at = entry;
	}
	first_range(die, &code);
	return code;
}

static const char *string_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	const char *text = NULL;

	if (dwarf_attr_integrate(die, name, &attr))
		text = dwarf_formstring(&attr);
	return text ? text : "-";
}

static void show(Dwarf_Die *die, const char *kind)
{
	struct code code = code_of(die);
	const char *file = dwarf_decl_file(die);
	int line = 0;

	if (kind[0] == 'b' && !code.any)
		return;
	dwarf_decl_line(die, &line);
	printf("%s\t%" PRIx64 "\t", kind, (uint64_t)dwarf_dieoffset(die));
	if (code.has_at)
		printf("%" PRIx64, (uint64_t)code.at);
	else
		putchar('-');
	printf("\t%d\t%s\t%s\t%d\t%s\n", code.any, string_of(die, DW_AT_name), file ? file : "-",
	       line, string_of(die, DW_AT_linkage_name));
}

static int walk(Dwarf_Die *root)
{
	static Dwarf_Die stack[DEPTH_MAX];
	int depth = 0;

	stack[0] = *root;
	for (;;) {
		Dwarf_Die *die = &stack[depth];
		int tag = dwarf_tag(die);

		if (tag == DW_TAG_inlined_subroutine)
			show(die, "inlined");
		else if (tag == DW_TAG_subprogram)
			show(die, "body");
		if (depth + 1 < DEPTH_MAX && dwarf_child(die, &stack[depth + 1]) == 0) {
			depth++;
			continue;
		}
		if (depth + 1 == DEPTH_MAX) {
			fprintf(stderr, "dies: nested deeper than %d\n", DEPTH_MAX);
			return 1;
		}
		while (depth > 0 && dwarf_siblingof(&stack[depth], &stack[depth]) != 0)
			depth--;
		if (depth == 0)
			return 0;
	}
}

int main(int argc, char **argv)
{
	return show_units(argc, argv, walk);
}
