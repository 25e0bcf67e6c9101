/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Auto-layout: members are declared, offsets come back, and BTF and C with them.
 *
 *	cc auto_layout.c $(pkg-config --cflags --libs cairn) && ./a.out i386
 */
#include <inttypes.h>
#include <stdlib.h>

#include <cairn/btf.h>
#include <cairn/layout/builder.h>

enum { FILE_NAME_LEN = 256, TASK_COMM_LEN = 16 };

static uint32_t build_event(struct cairn_layout_builder *b)
{
	uint32_t u32 = cairn_build_int(b, "unsigned int", CAIRN_C_INT, true);
	uint32_t character = cairn_build_int(b, "char", CAIRN_C_CHAR, false);
	const struct cairn_build_member members[] = {
		{.name = "e_pid", .type = u32},
		{.name = "e_filename", .type = cairn_build_array(b, character, FILE_NAME_LEN)},
		{.name = "e_comm", .type = cairn_build_array(b, character, TASK_COMM_LEN)},
	};

	return cairn_build_struct(b, "event", members, 3, NULL);
}

/* BTF in memory, and from it C that a compiler lays out the same. */
static int print_c(const struct cairn_types *types, uint32_t id, struct cairn_err *err)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts)};
	struct cairn_btf_builder *builder = NULL;
	struct cairn_btf *btf = NULL;
	void *bytes = NULL;
	size_t size;
	int rc = cairn_btf_builder_new(&opts, &builder, err);

	rc = rc < 0 ? rc : cairn_btf_add_types(builder, types, &id, 1, NULL, err);
	rc = rc < 0 ? rc : cairn_btf_finish(builder, &bytes, &size, err);
	rc = rc < 0 ? rc : cairn_btf_open_mem(bytes, size, "event", NULL, &btf, err);
	rc = rc < 0 ? rc : cairn_btf_dump(btf, CAIRN_BTF_C, NULL, 0, 0, stdout, err);
	cairn_btf_close(btf);
	free(bytes);
	cairn_btf_builder_free(builder);
	return rc;
}

int main(int argc, char **argv)
{
	const struct cairn_abi *abi = cairn_abi_find(argc > 1 ? argv[1] : "bpf");
	struct cairn_layout_builder *b = abi ? cairn_layout_builder_new(abi) : NULL;
	const struct cairn_types *types;
	struct cairn_err err = {0};

	if (!b)
		return 2;
	uint32_t event = build_event(b);
	int rc = cairn_layout_builder_types(b, &types, &err);
	if (!rc) {
		const struct cairn_type *t = cairn_types_get(types, event);

		for (uint32_t i = 0; i < t->n_members; i++)
			printf("%-12s %4" PRIu64 "\n", t->members[i].name,
			       t->members[i].bit_off / 8);
		printf("%-12s %4" PRIu64 "\n\n", "size", t->size);
		rc = print_c(types, event, &err);
	}
	if (rc)
		fprintf(stderr, "%s\n", err.msg);
	cairn_layout_builder_free(b);
	return rc != 0;
}
