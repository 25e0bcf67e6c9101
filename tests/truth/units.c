/* SPDX-License-Identifier: BSD-2-Clause */
#include "units.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int show_units(int argc, char **argv, int (*show)(Dwarf_Die *unit))
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	Dwarf *dw;
	int fd, status = 0;

	if (argc < 2)
		return 2;
	fd = open(argv[1], O_RDONLY);
	dw = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
	if (!dw) {
		fprintf(stderr, "%s: %s: %s\n", argv[0], argv[1],
			fd < 0 ? "cannot open" : dwarf_errmsg(-1));
		return 1;
	}
	while (status == 0 && dwarf_get_units(dw, cu, &cu, NULL, NULL, &unit, NULL) == 0)
		status = show(&unit);
	dwarf_end(dw);
	close(fd);
	return status;
}
