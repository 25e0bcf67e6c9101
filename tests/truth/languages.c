/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who described each function of a file, found with libdw, nothing of Cairn's
 *
 *	languages FILE       (the file that has the DWARF)
 *
 * One line per DW_TAG_subprogram with code that stands in a unit itself: "assembler" or "compiler",
 * a tab, the name. An assembler writes a DIE for each function symbol and knows no parameters.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdio.h>

#include "units.h"

static bool is_assembler(Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	Dwarf_Word language;

	return dwarf_attr(unit, DW_AT_language, &attr) && dwarf_formudata(&attr, &language) == 0 &&
	       language == DW_LANG_Mips_Assembler;
}

static bool has_code(Dwarf_Die *die)
{
	Dwarf_Addr base, lo, hi;

	return dwarf_ranges(die, 0, &base, &lo, &hi) > 0;
}

static int show_functions(Dwarf_Die *unit)
{
	const char *by = is_assembler(unit) ? "assembler" : "compiler";
	Dwarf_Die die;

	if (dwarf_child(unit, &die) != 0)
		return 0;
	do {
		Dwarf_Attribute attr;

		if (dwarf_tag(&die) != DW_TAG_subprogram || !has_code(&die) ||
		    !dwarf_attr_integrate(&die, DW_AT_name, &attr))
			continue;
		printf("%s\t%s\n", by, dwarf_formstring(&attr));
	} while (dwarf_siblingof(&die, &die) == 0);
	return 0;
}

int main(int argc, char **argv)
{
	return show_units(argc, argv, show_functions);
}
