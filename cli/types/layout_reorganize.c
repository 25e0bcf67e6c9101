/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --reorganize: structs in their best order, and the savings; --verify lets compilers prove it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/layout/reorganize.h>

#include "json.h"
#include "layout.h"
#include "say.h"

struct job {
	const struct layout_run *run;
	struct layout_weights weights;
	struct cairn_reorganize_opts opts;
	const char *type; /* its name, for the weights */
	bool any_saved;
};

static uint64_t weight(void *ctx, const char *member)
{
	const struct job *job = ctx;

	return layout_weight(&job->weights, job->type, member);
}

/* ---- text ---- */

static int show_text(const struct job *job, uint32_t id, const struct cairn_reorganized *r)
{
	uint64_t line = job->run->values->cacheline ? job->run->values->cacheline : 64;
	uint64_t saved = r->old_size - r->new_size;
	uint64_t lines = (r->old_size + line - 1) / line - (r->new_size + line - 1) / line;

	if (cairn_reorganized_print(job->run->layout, id, r, stdout) < 0)
		return fail(STATUS_NOT_HERE, "no memory");
	say(stdout, "/* saved %" PRIu64 " byte%s and %" PRIu64 " cacheline%s%s */\n", saved,
	    saved == 1 ? "" : "s", lines, lines == 1 ? "" : "s",
	    r->proven ? r->new_size == r->old_size ? ": no order is smaller"
						   : ": the smallest there is"
		      : "");
	if (job->opts.weight)
		say(stdout, "/* hot members: in %u cacheline%s, before in %u */\n", r->new_lines,
		    r->new_lines == 1 ? "" : "s", r->old_lines);
	if (!r->proven)
		say(stdout,
		    "/* %u groups of members: not proven; no order has less than %" PRIu64
		    " bytes */\n",
		    r->n_groups, r->bound);
	if (r->drops_unnamed)
		puts("/* bit-fields without a name, which are there by the offsets of the others, "
		     "are gone */");
	return STATUS_YES;
}

/* Runs of bit-fields in one unit would save more: a user who knows the threads can allow it. */
static int show_merged(struct job *job, uint32_t id, const struct cairn_reorganized *r)
{
	struct cairn_reorganize_opts opts = job->opts;
	struct cairn_reorganized merged;
	struct cairn_err err = {0};

	if (opts.merge_bit_fields)
		return STATUS_YES;
	opts.merge_bit_fields = true;
	int rc = cairn_layout_reorganize(job->run->layout, id, &opts, &merged, &err);
	if (rc < 0)
		return fail_err(rc, &err, STATUS_NO);
	if (merged.new_size < r->new_size)
		say(stdout,
		    "/* %" PRIu64 " bytes with --merge-bit-fields, if no two threads write to "
		    "bit-fields of it at once */\n",
		    merged.new_size);
	cairn_reorganized_free(&merged);
	return STATUS_YES;
}

/* ---- JSON: docs/json.md ---- */

static void show_json(const struct job *job, uint32_t id, const struct cairn_reorganized *r,
		      const char *verified)
{
	const struct cairn_types *types = job->run->types;
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, id));
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_text(&j, "kind", layout_kind(types, id));
	json_text(&j, "name", cairn_types_get(types, id)->name);
	json_uint(&j, "size", r->new_size);
	json_uint(&j, "size_before", r->old_size);
	json_uint(&j, "saved", r->old_size - r->new_size);
	json_uint(&j, "bound", r->bound);
	json_bool(&j, "proven", r->proven);
	json_uint(&j, "groups", r->n_groups);
	json_uint(&j, "moved", r->n_moved);
	json_bool(&j, "drops_unnamed", r->drops_unnamed);
	if (job->opts.weight) {
		json_uint(&j, "hot_lines", r->new_lines);
		json_uint(&j, "hot_lines_before", r->old_lines);
	}
	if (job->run->values->verify)
		json_text(&j, "verified", verified);
	json_open(&j, "members", '[');
	for (uint32_t i = 0; i < r->n_members; i++) {
		const struct cairn_member *m = &t->members[r->members[i].index];

		json_open(&j, NULL, '{');
		json_text(&j, "name", m->name);
		json_uint(&j, "bit_offset", r->members[i].bit_off);
		if (m->bit_size)
			json_uint(&j, "bits", m->bit_size);
		json_uint(&j, "bit_offset_before", m->bit_off);
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
}

/* ---- one type ---- */

/* An exit status; @ret: the compilers that agreed, or why there were none. */
static int verify(const struct job *job, uint32_t id, const struct cairn_reorganized *r, char *ret,
		  size_t size)
{
	struct cairn_err err = {0};
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	int status;

	if (!out)
		return fail(STATUS_NOT_HERE, "no memory");
	int rc = cairn_reorganized_verify_text(job->run->layout, id, r, out, &err);
	bool is_cut = ferror(out);
	if (fclose(out) || is_cut || !text)
		rc = -ENOMEM;
	status = rc < 0 ? fail_err(rc, &err, STATUS_NOT_HERE)
			: layout_verify(text, cairn_source_abi(job->run->source), ret, size);
	free(text);
	return status;
}

static int reorganize_one(struct job *job, uint32_t id)
{
	const struct cairn_type *node = cairn_types_get(job->run->types, id);
	struct cairn_reorganized r;
	struct cairn_err err = {0};
	char verified[256] = "";
	int status = STATUS_YES;

	job->type = node->name;
	int rc = cairn_layout_reorganize(job->run->layout, id, &job->opts, &r, &err);
	if (rc == -EOPNOTSUPP)
		return fail_lines(STATUS_NO, err.msg, "%s %s: ", layout_kind(job->run->types, id),
				  node->name);
	if (rc < 0)
		return fail_err(rc, &err, STATUS_NO);
	job->any_saved |= r.new_size < r.old_size || r.new_lines < r.old_lines;
	if (job->run->values->verify)
		status = verify(job, id, &r, verified, sizeof(verified));
	if (!status && job->run->values->json) {
		show_json(job, id, &r, verified);
	} else if (!status) {
		status = show_text(job, id, &r);
		status = status ? status : show_merged(job, id, &r);
		if (!status && job->run->values->verify)
			say(stdout, "/* verified: size and offsets are those of %s */\n", verified);
	}
	cairn_reorganized_free(&r);
	return status;
}

static bool has_order(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, id));

	return (t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS) && t->n_members;
}

int layout_reorganize(const struct layout_run *run, const struct cairn_source_list *list)
{
	const struct layout_values *v = run->values;
	struct job job = {.run = run};
	int status = v->weights ? layout_weights_read(v->weights, &job.weights) : STATUS_YES;

	job.opts = (struct cairn_reorganize_opts){
		.size = sizeof(job.opts),
		.pin_first = v->pin_first,
		.merge_bit_fields = v->merge_bit_fields,
		.lines_first = v->lines_first,
		.together = v->together.items,
		.n_together = v->together.n,
		.weight = v->weights ? weight : NULL,
		.ctx = &job,
	};
	for (size_t i = 0; i < list->n && !status; i++) {
		/*
		 * A query for all structs does not include unions; a single one is answered.
		 */
		if (list->n > 1 && !has_order(run->types, list->ids[i]))
			continue;
		status = reorganize_one(&job, list->ids[i]);
		/* Among many, those that cannot be reorganised are named, and the others shown. */
		if (status == STATUS_NO && list->n > 1)
			status = STATUS_YES;
	}
	layout_weights_free(&job.weights);
	return status;
}
