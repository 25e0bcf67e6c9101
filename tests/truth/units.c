/* SPDX-License-Identifier: BSD-2-Clause */
#include "units.h"

#include <fcntl.h>
#include <stdio.h>

Dwarf *open_dwarf(int argc, char **argv)
{
	const char *path = argc < 2 ? "" : argv[1];
	int fd = open(path, O_RDONLY);
	Dwarf *dw = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);

	if (!dw)
		fprintf(stderr, "%s: %s: %s\n", argv[0], path,
			fd < 0 ? "cannot open" : dwarf_errmsg(-1));
	return dw;
}

int show_units(int argc, char **argv, int (*show)(Dwarf_Die *unit))
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	Dwarf *dw = open_dwarf(argc, argv);
	int status = 0;

	if (!dw)
		return 1;
	while (status == 0 && dwarf_get_units(dw, cu, &cu, NULL, NULL, &unit, NULL) == 0)
		status = show(&unit);
	dwarf_end(dw);
	return status;
}
