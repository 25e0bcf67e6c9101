/* SPDX-License-Identifier: BSD-2-Clause */
/* The units of a file, read with libdw: what the programs dies and languages have in common. */
#ifndef TRUTH_UNITS_H
#define TRUTH_UNITS_H

#include <elfutils/libdw.h>

/* Calls @show for each unit of the file argv[1]. Returns the exit status. */
int show_units(int argc, char **argv, int (*show)(Dwarf_Die *unit));

#endif
