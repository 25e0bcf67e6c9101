/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn layout: the meaning of the bytes of structs. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/layout/reorganize.h>

#include "layout.h"
#include "say.h"

#define RUNNING "/sys/kernel/btf/vmlinux"

static const struct opt opts[] = {
	{0, "running", OPT_FLAG, NULL, offsetof(struct layout_values, running),
	 "the types of the running kernel, instead of FILE"},
	{0, "abi", OPT_TEXT, "ABI[,ABI...]", offsetof(struct layout_values, abi),
	 "lay the types out for this ABI, also those compiled for another; with several, show the "
	 "differences from the first"},
	{'s', "sizes", OPT_FLAG, NULL, offsetof(struct layout_values, sizes),
	 "only name, size and number of holes"},
	{'H', "holes", OPT_COUNT, "N", offsetof(struct layout_values, holes),
	 "only structs with at least N holes"},
	{'P', "packable", OPT_FLAG, NULL, offsetof(struct layout_values, packable),
	 "only structs that another order of members makes smaller: name, size, smallest size, "
	 "bytes saved"},
	{'i', "contains", OPT_TEXT, "TYPE", offsetof(struct layout_values, contains),
	 "only structs with a member of this struct, union or enum"},
	{'E', "expand", OPT_FLAG, NULL, offsetof(struct layout_values, expand),
	 "write out the structs that members are, and theirs"},
	{0, "hex", OPT_FLAG, NULL, offsetof(struct layout_values, hex),
	 "offsets and sizes in hexadecimal"},
	{'c', "cacheline", OPT_COUNT, "BYTES", offsetof(struct layout_values, cacheline),
	 "size of a cache line; otherwise 64"},
	{0, "check", OPT_FLAG, NULL, offsetof(struct layout_values, check),
	 "FILE is a BPF object: compare its types with the declarations of its reader; with "
	 "--against"},
	{0, "against", OPT_TEXT, "DECLS", offsetof(struct layout_values, against),
	 "that program's declarations: C, Java (hello-ebpf), Rust, Go, Python"},
	{0, "ignore", OPT_LIST, "MEMBER", offsetof(struct layout_values, ignore),
	 "with --check: a member, MEMBER or MEMBER.INNER, that may differ; may be repeated"},
	{0, "diff", OPT_FLAG, NULL, offsetof(struct layout_values, diff),
	 "two files, OLD NEW: the differences between their types of the same name"},
	{0, "lock", OPT_TEXT, "LOCK", offsetof(struct layout_values, lock),
	 "a file with the layouts as they have to stay: show the changes"},
	{0, "update", OPT_FLAG, NULL, offsetof(struct layout_values, update),
	 "with --lock: write it"},
	{'R', "reorganize", OPT_FLAG, NULL, offsetof(struct layout_values, reorganize),
	 "the smallest order of members, proven if possible"},
	{0, "verify", OPT_FLAG, NULL, offsetof(struct layout_values, verify),
	 "with --reorganize: have the installed compilers prove size and offsets"},
	{0, "keep-together", OPT_LIST, "A,B", offsetof(struct layout_values, together),
	 "with --reorganize: members that stay side by side, in this order; may be repeated"},
	{0, "pin-first", OPT_FLAG, NULL, offsetof(struct layout_values, pin_first),
	 "with --reorganize: the first member stays first"},
	{0, "merge-bit-fields", OPT_FLAG, NULL, offsetof(struct layout_values, merge_bit_fields),
	 "with --reorganize: bit-fields that were apart may share a unit"},
	{0, "weights", OPT_TEXT, "FILE", offsetof(struct layout_values, weights),
	 "with --reorganize: CSV of hits (member,hits or type,member,hits); hot members go into "
	 "the fewest cache lines"},
	{0, "lines-first", OPT_FLAG, NULL, offsetof(struct layout_values, lines_first),
	 "with --weights: fewer cache lines are worth bytes, up to the size that the struct has"},
	{0, "lint", OPT_FLAG, NULL, offsetof(struct layout_values, lint),
	 "faults of structs as records between programs: padding that leaks, readers that differ; "
	 "status 1"},
	{0, "rules", OPT_TEXT, "RULE,...", offsetof(struct layout_values, rules),
	 "with --lint: only these, or with a - before them all but these"},
	{0, "html", OPT_FLAG, NULL, offsetof(struct layout_values, html),
	 "a page with byte maps; with --abi A,B or --beside two of them side by side"},
	{0, "beside", OPT_TEXT, "FILE", offsetof(struct layout_values, beside),
	 "with --html: another build, to compare with"},
	{0, "json", OPT_FLAG, NULL, offsetof(struct layout_values, json),
	 "one JSON object per type"},
	{0, "via-compiler", OPT_FLAG, NULL, offsetof(struct layout_values, via_compiler),
	 "have clang lay C out, and read its debug information"},
	LAYOUT_OPTS_FILE(0),
	{0},
};

static const struct example examples[] = {
	{"cairn layout --running task_struct",
	 "a struct of the running kernel, as pahole prints it"},
	{"cairn layout event.h --abi x86-64,i386",
	 "which members of a header's structs are elsewhere on i386"},
	{"cairn layout --check event.bpf.o --against Event.java",
	 "whether Java reads what the BPF program writes"},
	{"cairn layout --diff v1.h v2.h",
	 "the errors of a reader of the old structs with the new ones"},
	{"cairn layout event.h --lock layout.lock",
	 "exit status 1 when a layout is not the one that is locked"},
	{"cairn layout vmlinux --sizes", "every struct with its size and number of holes"},
	{"cairn layout prog.bpf.o 'struct event' --json", "one struct, for a program"},
	{"cairn layout --lint event.bpf.o",
	 "which records of a BPF program leak padding, or differ for a 32-bit reader"},
	{"cairn layout event.h --html --abi bpf,i386 > event.html",
	 "a picture of each struct, on two ABIs side by side"},
	{"cairn layout event.h padded_event --reorganize --verify",
	 "its members in the smallest order, proven by gcc and clang"},
	{0},
};

/* ---- the request ---- */

/* Names in @text. */
static int parse_abis(const char *text, const struct cairn_abi **ret, size_t *ret_n)
{
	for (*ret_n = 0; text;
	     text = text[strcspn(text, ",")] ? text + strcspn(text, ",") + 1 : NULL) {
		char name[64];

		if (*ret_n == ABIS_MAX)
			return fail(STATUS_USAGE, "--abi takes %d ABIs at most", ABIS_MAX);
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, ","), text);
		ret[*ret_n] = cairn_abi_find(name);
		if (!ret[(*ret_n)++]) {
			fail(STATUS_USAGE, "no such ABI is known: %s\nKnown:", name);
			for (size_t i = 0; cairn_abi_at(i); i++)
				say(stderr, " %s", cairn_abi_at(i)->name);
			fputc('\n', stderr);
			return STATUS_USAGE;
		}
	}
	return STATUS_YES;
}

/* ---- filters ---- */

struct show {
	const struct layout_values *values;
	const struct layout_source *file;
	const struct cairn_source *source;
	const struct cairn_types *types;
	struct cairn_layout *layout;
	bool any;
};

static const struct cairn_type *resolve(const struct show *s, uint32_t id)
{
	return cairn_types_get(s->types, cairn_types_resolve(s->types, id));
}

static bool contains(const struct show *s, const struct cairn_type *t)
{
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_type *m = resolve(s, t->members[i].type);

		if (m->kind == CAIRN_T_ARRAY)
			m = resolve(s, m->ref);
		if (m->name && !strcmp(m->name, s->values->contains))
			return true;
	}
	return false;
}

/*
 * The size that C gives the best order; the size it has where nothing is known of others. 0;
 * -ENOMEM.
 */
static int smallest_size(const struct show *s, uint32_t id, uint64_t *ret)
{
	struct cairn_reorganize_opts o = {.size = sizeof(o), .size_only = true};
	struct cairn_reorganized r;
	int rc = cairn_layout_reorganize(s->layout, id, &o, &r, NULL);

	*ret = rc < 0 ? resolve(s, id)->size : r.new_size;
	cairn_reorganized_free(&r);
	return rc == -ENOMEM ? rc : 0;
}

static int show_packable(struct show *s, uint32_t id)
{
	uint64_t smallest, size = resolve(s, id)->size;
	int rc = smallest_size(s, id, &smallest);

	if (rc || smallest == size)
		return rc;
	s->any = true;
	if (s->values->json)
		return layout_json(s->file, s->layout, id, s->values->expand);
	say(stdout, "%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
	    cairn_types_get(s->types, id)->name, size, smallest, size - smallest);
	return 0;
}

static int show_text(const struct show *s, uint32_t id)
{
	int rc = cairn_layout_print(s->layout, id, stdout);

	if (!rc)
		layout_print_deduced(s->file, id);
	return rc;
}

/* 0; -ENOMEM. */
static int show_one(struct show *s, uint32_t id)
{
	const struct cairn_type *t = resolve(s, id);
	const struct layout_values *v = s->values;
	struct cairn_layout_facts f = {0};
	int rc = cairn_layout_facts(s->layout, id, &f, NULL);

	if (rc < 0 || (v->holes && f.n_holes < v->holes) || (v->contains && !contains(s, t)))
		return rc < 0 ? rc : 0;
	if (v->packable)
		return show_packable(s, id);
	s->any = true;
	if (v->json)
		return layout_json(s->file, s->layout, id, s->values->expand);
	if (!v->sizes)
		return show_text(s, id);
	say(stdout, "%s\t%" PRIu64 "\t%u\n", cairn_types_get(s->types, id)->name, t->size,
	    f.n_holes);
	return 0;
}

static int show_list(struct show *s, const struct cairn_source_list *list)
{
	const struct layout_run run = {s->values, s->source, s->types, s->layout};

	if (s->values->lint)
		return layout_lint(&run, list);
	if (s->values->reorganize)
		return layout_reorganize(&run, list);
	for (size_t i = 0; i < list->n && !ferror(stdout); i++)
		if (show_one(s, list->ids[i]) < 0)
			return fail(STATUS_NOT_HERE, "no memory");
	return s->any ? STATUS_YES : STATUS_NO;
}

static int show_all(struct layout_source *file, const struct cairn_abi *abi,
		    const struct layout_values *values, char *const *patterns, size_t n_patterns)
{
	struct cairn_source *source = file->source;
	struct cairn_layout_opts o = {.size = sizeof(o),
				      .cacheline = (uint32_t)values->cacheline,
				      .expand = values->expand,
				      .hex = values->hex,
				      .big_endian = cairn_source_is_big_endian(source),
				      .infer_aligned =
					      cairn_source_kind(source) == CAIRN_SOURCE_BTF};
	struct show s = {.values = values, .file = file, .source = source};
	struct cairn_source_list list = {0};
	struct cairn_err err = {0};
	int status = layout_select(source, patterns, n_patterns, &list);

	if (!status && abi)
		status = layout_retarget(file, abi, &list);
	s.types = layout_types(file);
	o.abi = layout_abi(file);
	if (!status && cairn_layout_new(s.types, &o, &s.layout, &err) < 0)
		status = fail_told(STATUS_NOT_HERE, &err);
	if (!status)
		status = show_list(&s, &list);
	cairn_layout_free(s.layout);
	free(list.ids);
	return status;
}

static int run(void *v, const struct operands *operands)
{
	const struct layout_values *values = v;
	const struct cairn_abi *abis[ABIS_MAX] = {NULL};
	size_t n_abis, skip = values->running ? 0 : 1;
	const char *path = values->running ? RUNNING : operands->n ? operands->items[0] : NULL;
	struct layout_source source;
	int status = parse_abis(values->abi, abis, &n_abis);

	if (status)
		return status;
	if (!path)
		return fail(STATUS_USAGE,
			    "a file is missing; or use --running for the kernel's types");
	if (values->check != !!values->against || (values->update && !values->lock))
		return fail(STATUS_USAGE,
			    "--check FILE --against DECLS; --update belongs to --lock");
	if (values->ignore.n && !values->check)
		return fail(STATUS_USAGE, "--ignore belongs to --check");
	if ((n_abis > 1 && (values->diff || values->lock)) || (n_abis > 2 && values->html))
		return fail(STATUS_USAGE, "--diff and --lock take one ABI, --html two");
	if (values->cacheline > 1 << 20)
		return fail(STATUS_USAGE, "no cache line has %lu bytes", values->cacheline);
	if (values->check)
		return layout_check(path, abis, n_abis, values, operands->items + skip,
				    operands->n - skip);
	if (values->diff)
		return layout_diff(abis[0], values, operands);
	if (values->lock)
		return layout_lock(path, abis[0], values, operands->items + skip,
				   operands->n - skip);
	if (values->html)
		return layout_html(path, abis, n_abis, values, operands->items + skip,
				   operands->n - skip);
	if (n_abis > 1)
		return layout_compare(path, abis, n_abis, values, operands->items + skip,
				      operands->n - skip);
	status = layout_open(path, abis[0], values, &source);
	if (!status)
		status = show_all(&source, abis[0], values, operands->items + skip,
				  operands->n - skip);
	layout_close(&source);
	return status;
}

const struct cmd cmd_layout = {
	.name = "layout",
	.summary = "offsets, sizes, holes and cache lines of structs",
	.operands = "[FILE] [TYPE...]",
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct layout_values),
	.pages = true,
	.run = run,
};
