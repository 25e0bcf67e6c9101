/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checking
 *
 * Opening made sure that every record lies inside its section; this file checks everything inside
 * the records. Rules come in two sets. Those of the format hold for BTF of any program. Those of
 * the kernel are added by BPF_BTF_LOAD: names of C, members in ascending order, no overlapping
 * variables, its limits. They are stated from its behaviour, and a test loads the BTF that is
 * checked.
 *
 * One pass checks each record alone, with the kinds of the records that it refers to. If that finds
 * nothing, a second one follows the references for loops and sizes, and can trust every id that it
 * meets.
 */
#include <errno.h>

#include "btf/check.h"

static void check_blob(struct btf_check *c)
{
	const struct cairn_btf *btf = c->btf;
	if (btf->flags)
		btf_broken(c, 0, "the header has flags 0x%x, of which none is known", btf->flags);
	if (btf->gap)
		btf_broken(c, 0, "there are bytes in the blob that belong to no section");
	if (c->kernel && btf->start_id == btf->end_id)
		btf_broken(c, 0, "there are no records");
	for (uint32_t kind = 0; kind < btf->n_layout; kind++) {
		struct btf_kind_layout l;
		btf_layout_of(btf, kind, &l);
		if (l.fixed_bytes % 4 || l.elem_bytes % 4)
			btf_broken(c, 0,
				   "the layout section, offset 0x%x: the sizes of kind %u are not "
				   "those of whole words",
				   btf->layout_off + 4 * kind, kind);
	}
}

/*
 * The largest id that the kernel accepts (include/uapi/linux/btf.h; BTF_MAX_SIZE in
 * kernel/bpf/btf.c).
 */
#define KERNEL_IDS_MAX     0xfffff
#define KERNEL_STRINGS_MAX 0xffffff
#define KERNEL_BLOB_MAX    (16u << 20)

static void check_kernel_limits(struct btf_check *c)
{
	const struct cairn_btf *btf = c->btf;
	uint64_t bytes =
		btf->types_off + 4ull * btf->n_words + 4ull * btf->n_layout + btf->strings_size;
	if (btf->end_id - 1 > KERNEL_IDS_MAX)
		btf_broken(c, 0, "%u types; a kernel takes 1048575", btf->end_id - 1);
	if (btf_end_string(btf) - 1 > KERNEL_STRINGS_MAX)
		btf_broken(c, 0, "%u bytes of strings; a kernel takes 16777216",
			   btf_end_string(btf));
	if (btf->n_layout && btf_kernel_before(c, BTF_LINUX_LAYOUT))
		btf_broken(c, 0, "a layout section; kernels take it from Linux 7.1 on");
	if (bytes > KERNEL_BLOB_MAX)
		btf_broken(c, 0, "%llu bytes; a kernel takes 16777216", (unsigned long long)bytes);
}

static int check(const struct cairn_btf *btf, bool kernel, uint32_t version,
		 void (*report)(void *ctx, uint32_t id, uint64_t off, const char *text), void *ctx)
{
	struct btf_check c = {
		.btf = btf, .kernel = kernel, .version = version, .report = report, .ctx = ctx};
	struct cairn_btf_type t;
	check_blob(&c);
	if (kernel)
		check_kernel_limits(&c);
	for (uint32_t id = btf->start_id; id < btf->end_id; id++) {
		cairn_btf_type(btf, id, &t);
		btf_check_record(&c, &t);
	}
	int rc = c.n_broken ? 0 : btf_check_graph(&c);
	if (rc == 0 && kernel && !c.n_broken)
		rc = btf_check_fields(&c);
	if (rc < 0)
		return rc;
	/* Its missing part read as zeros: neither the broken rules nor their absence are facts. */
	if (cairn_btf_shortened(btf))
		return -EBADMSG;
	return c.n_broken < INT32_MAX ? (int)c.n_broken : INT32_MAX;
}

int cairn_btf_check(const struct cairn_btf *btf,
		    void (*report)(void *ctx, uint32_t id, uint64_t off, const char *text),
		    void *ctx)
{
	return check(btf, false, 0, report, ctx);
}

int cairn_btf_check_for_kernel(const struct cairn_btf *btf, uint32_t version,
			       void (*report)(void *ctx, uint32_t id, uint64_t off,
					      const char *text),
			       void *ctx)
{
	return check(btf, true, version, report, ctx);
}
