/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * distil FILE THREADS types|all [DEBUG-FILE]: what encode.py measures, without a command line
 * around it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/btf/from_dwarf.h>

int main(int argc, char **argv)
{
	struct cairn_btfgen_opts opts = {.size = sizeof(opts)};
	struct cairn_btfgen d;
	struct cairn_binary *bin;
	struct cairn_err err = {0};
	struct cairn_binary_opts where = {.size = sizeof(where),
					  .debug_file = argc == 5 ? argv[4] : NULL};
	if (argc != 4 && argc != 5)
		return 2;
	opts.threads = (unsigned int)atoi(argv[2]);
	opts.dialect = strcmp(argv[3], "types") ? CAIRN_BTF_LOC_N : CAIRN_BTF_NO_LOC;
	if (cairn_binary_open(argv[1], &where, &bin, &err) < 0 ||
	    cairn_btf_from_dwarf(bin, &opts, &d, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 4;
	}
	printf("%u types, %llu sites\n", d.n_types, (unsigned long long)d.n_sites);
	cairn_btfgen_free(&d);
	cairn_binary_close(bin);
	return 0;
}
