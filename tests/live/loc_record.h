/* SPDX-License-Identifier: BSD-2-Clause */
/* What the BPF programs of test_loc.py send to loc_programs.c. */
enum { LOC_RECORD_ARGS = 16 };

struct loc_record {
	unsigned int id;
	int n;
	unsigned long long cookie;
	struct {
		int error;
		unsigned char bytes[16];
	} args[LOC_RECORD_ARGS];
};
