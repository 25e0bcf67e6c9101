/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second opinion on what code the debug information gives to which call, found with libdw,
 * nothing of Cairn's
 *
 *	copies FILE
 *
 * Lines of fields that are separated by tabs, addresses and offsets in hexadecimal:
 *
 *	copy  DIE  PARENT  NAME  DECL-LINE  CALL-LINE  ENTRY  LO-HI,LO-HI...	a DW_TAG_inlined_subroutine or a DW_TAG_subprogram with code;
 *							PARENT is the next one around it, or 0; CALL-LINE is 0 of a body; ENTRY is what DW_AT_entry_pc
 *							says, or where a body begins; - where there is none
 *	row   ADDRESS  LINE  COLUMN  IS-STMT		of the line table
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* Deeper than any compiler nests; a deeper file ends the program with a message. */
#define DEPTH_MAX 4096

static bool is_function(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_inlined_subroutine || dwarf_tag(die) == DW_TAG_subprogram;
}

static uint64_t number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	return dwarf_attr(die, name, &attr) && dwarf_formudata(&attr, &value) == 0 ? value : 0;
}

/* The start of an inlined copy's first range is no entry; dwarf_entrypc() would take it for one. */
static void show_entry(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Addr at;
	bool named = dwarf_attr(die, DW_AT_entry_pc, &attr) && dwarf_entrypc(die, &at) == 0;

	if (named || (dwarf_tag(die) == DW_TAG_subprogram && dwarf_lowpc(die, &at) == 0))
		printf("%" PRIx64 "\t", (uint64_t)at);
	else
		printf("-\t");
}

static void show_copy(Dwarf_Die *die, uint64_t parent)
{
	Dwarf_Addr base, lo, hi;
	Dwarf_Attribute name;
	ptrdiff_t off = 0;
	int line = 0;
	bool any = false;
	const char *text =
		dwarf_attr_integrate(die, DW_AT_name, &name) ? dwarf_formstring(&name) : NULL;

	dwarf_decl_line(die, &line);
	printf("copy\t%" PRIx64 "\t%" PRIx64 "\t%s\t%d\t%" PRIu64 "\t",
	       (uint64_t)dwarf_dieoffset(die), parent, text ? text : "-", line,
	       number_of(die, DW_AT_call_line));
	show_entry(die);
	while ((off = dwarf_ranges(die, off, &base, &lo, &hi)) > 0) {
		if (lo >= hi)
			continue;
		printf("%s%" PRIx64 "-%" PRIx64, any ? "," : "", (uint64_t)lo, (uint64_t)hi);
		any = true;
	}
	puts(any ? "" : "-");
}

static int show_copies(Dwarf_Die *root)
{
	static Dwarf_Die stack[DEPTH_MAX];
	static uint64_t around[DEPTH_MAX]; /* the function that holds what is at each depth */
	int depth = 0;

	stack[0] = *root;
	around[0] = 0;
	for (;;) {
		Dwarf_Die *die = &stack[depth];

		if (is_function(die))
			show_copy(die, around[depth]);
		if (depth + 1 == DEPTH_MAX) {
			fprintf(stderr, "copies: nested deeper than %d\n", DEPTH_MAX);
			return 1;
		}
		if (dwarf_child(die, &stack[depth + 1]) == 0) {
			around[depth + 1] = is_function(die) ? dwarf_dieoffset(die) : around[depth];
			depth++;
			continue;
		}
		while (depth > 0 && dwarf_siblingof(&stack[depth], &stack[depth]) != 0)
			depth--;
		if (depth == 0)
			return 0;
	}
}

static void show_rows(Dwarf_Die *root)
{
	Dwarf_Lines *lines;
	size_t n;

	if (dwarf_getsrclines(root, &lines, &n) != 0)
		return;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *row = dwarf_onesrcline(lines, i);
		Dwarf_Addr at;
		bool is_stmt, is_end;
		int line, column;

		if (dwarf_lineaddr(row, &at) || dwarf_lineno(row, &line) ||
		    dwarf_linecol(row, &column) || dwarf_linebeginstatement(row, &is_stmt) ||
		    dwarf_lineendsequence(row, &is_end) || is_end)
			continue;
		printf("row\t%" PRIx64 "\t%d\t%d\t%d\n", (uint64_t)at, line, column, is_stmt);
	}
}

int main(int argc, char **argv)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die root;
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	Dwarf *dw = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);

	if (!dw) {
		fprintf(stderr, "copies: cannot read the debug information\n");
		return 1;
	}
	while (dwarf_get_units(dw, cu, &cu, NULL, NULL, &root, NULL) == 0) {
		if (show_copies(&root) != 0)
			return 1;
		show_rows(&root);
	}
	dwarf_end(dw);
	close(fd);
	return 0;
}
