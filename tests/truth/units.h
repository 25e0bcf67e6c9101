/* SPDX-License-Identifier: BSD-2-Clause */
/* A file read with libdw: what the programs dies, inlined and languages have in common. */
#ifndef TRUTH_UNITS_H
#define TRUTH_UNITS_H

#include <elfutils/libdw.h>

/* The DWARF of the file argv[1], for dwarf_end(), which leaves the file open; NULL: said why. */
Dwarf *open_dwarf(int argc, char **argv);

/* Calls @show for each unit of the file argv[1]. Returns the exit status. */
int show_units(int argc, char **argv, int (*show)(Dwarf_Die *unit));

#endif
