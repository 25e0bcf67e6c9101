/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the code of inlined calls is, found with libdw, nothing of Cairn's
 *
 *	inlined FILE <OFFSETS
 *
 * For each offset of a DW_TAG_inlined_subroutine a line: the offset, the function's name, and the
 * ranges as LOW-HIGH. Numbers are hexadecimal. An offset of anything else has no line.
 */
#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>

#include "units.h"

static void show(Dwarf *dw, uint64_t offset)
{
	Dwarf_Addr base, lo, hi;
	Dwarf_Attribute attr;
	const char *name = NULL;
	ptrdiff_t at = 0;
	Dwarf_Die die;

	if (!dwarf_offdie(dw, offset, &die) || dwarf_tag(&die) != DW_TAG_inlined_subroutine)
		return;
	if (dwarf_attr_integrate(&die, DW_AT_name, &attr))
		name = dwarf_formstring(&attr);
	printf("%" PRIx64 " %s", offset, name ? name : "-");
	while ((at = dwarf_ranges(&die, at, &base, &lo, &hi)) > 0)
		printf(" %" PRIx64 "-%" PRIx64, (uint64_t)lo, (uint64_t)hi);
	putchar('\n');
}

int main(int argc, char **argv)
{
	uint64_t offset;
	Dwarf *dw = open_dwarf(argc, argv);

	if (!dw)
		return 1;
	while (scanf("%" SCNx64, &offset) == 1)
		show(dw, offset);
	dwarf_end(dw);
	return 0;
}
