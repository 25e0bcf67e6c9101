/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile from pprof's format
 *
 * protobuf-c checks the bytes against the messages. What the numbers in them refer to is checked
 * here: strings, mappings, functions and locations must exist, and no id may be given twice.
 */
#include "export/profile_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "export/messages.h"
#include "profile.pb-c.h"

struct reader {
	const CairnPprof__Profile *in;
	const char *name;
	struct cairn_profile *p;
	struct map mappings, functions, locations; /* our id by that of the file */
	VEC(uint32_t) stack;
	VEC(struct cairn_profile_line) lines;
	VEC(struct cairn_profile_label) labels;
	struct cairn_err *err;
	int rc;
};

static int damaged(struct reader *r, const char *what, uint64_t id)
{
	return r->rc = err_set(r->err, -EBADMSG, "%s: damaged: %s %" PRIu64, r->name, what, id);
}

static int no_memory(struct reader *r)
{
	return r->rc = err_nomem(r->err, "the profile");
}

static const char *string(struct reader *r, int64_t at)
{
	if (at < 0 || (uint64_t)at >= r->in->n_string_table) {
		damaged(r, "there is no string", (uint64_t)at);
		return "";
	}
	return r->in->string_table[at];
}

/* Line numbers that do not fit are not known. */
static uint32_t line_number(int64_t line)
{
	return line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}

static void note(struct reader *r, struct map *ids, uint64_t id, uint32_t own, const char *what)
{
	uint64_t before;

	if (r->rc == 0 && (!id || map_get(ids, id, &before)))
		damaged(r, what, id);
	if (r->rc == 0 && map_put(ids, id, own) < 0)
		no_memory(r);
}

static enum cairn_profile_code code_of(const char *path)
{
	if (!strncmp(path, "[kernel", 7) || !strncmp(path, "[guest.kernel", 13))
		return CAIRN_PROFILE_KERNEL;
	return !strcmp(path, "[jit]") ? CAIRN_PROFILE_JIT : CAIRN_PROFILE_USER;
}

static void read_mapping(struct reader *r, const CairnPprof__Mapping *in)
{
	struct cairn_profile_mapping m = {.start = in->memory_start,
					  .limit = in->memory_limit,
					  .offset = in->file_offset,
					  .path = string(r, in->filename),
					  .build_id = string(r, in->build_id)};
	uint32_t id = 0;

	m.code = code_of(m.path);
	if (r->rc == 0)
		r->rc = cairn_profile_add_mapping(r->p, &m, &id, r->err);
	note(r, &r->mappings, in->id, id, "the id of a mapping is 0, or that of another one:");
}

static void read_function(struct reader *r, const CairnPprof__Function *in)
{
	struct cairn_profile_function f = {.name = string(r, in->name),
					   .linkage_name = string(r, in->system_name),
					   .file = string(r, in->filename),
					   .line = line_number(in->start_line)};
	uint32_t id = 0;

	if (!*f.name)
		f.name = f.linkage_name;
	if (r->rc == 0)
		r->rc = cairn_profile_add_function(r->p, &f, &id, r->err);
	note(r, &r->functions, in->id, id, "the id of a function is 0, or that of another one:");
}

static uint32_t refer(struct reader *r, const struct map *ids, uint64_t id, const char *what)
{
	uint64_t own = 0;

	if (r->rc == 0 && !map_get(ids, id, &own))
		damaged(r, what, id);
	return (uint32_t)own;
}

static void read_location(struct reader *r, const CairnPprof__Location *in)
{
	struct cairn_profile_location l = {.address = in->address};
	uint32_t id = 0;

	if (in->mapping_id)
		l.mapping = refer(r, &r->mappings, in->mapping_id, "there is no mapping");
	r->lines.n = 0;
	for (size_t i = 0; r->rc == 0 && i < in->n_line; i++) {
		struct cairn_profile_line line = {.function = refer(r, &r->functions,
								    in->line[i]->function_id,
								    "there is no function"),
						  .line = line_number(in->line[i]->line)};

		if (!VEC_ADD(&r->lines, line))
			no_memory(r);
	}
	l.lines = r->lines.p;
	l.n_lines = r->lines.n;
	if (r->rc == 0)
		r->rc = cairn_profile_add_location(r->p, &l, &id, r->err);
	note(r, &r->locations, in->id, id, "the id of a location is 0, or that of another one:");
}

static void read_labels(struct reader *r, const CairnPprof__Sample *in)
{
	r->labels.n = 0;
	for (size_t i = 0; r->rc == 0 && i < in->n_label; i++) {
		struct cairn_profile_label l = {.key = string(r, in->label[i]->key),
						.text = string(r, in->label[i]->str),
						.number = in->label[i]->num,
						.unit = string(r, in->label[i]->num_unit)};

		if (!VEC_ADD(&r->labels, l))
			no_memory(r);
	}
}

static void read_sample(struct reader *r, const CairnPprof__Sample *in, uint64_t i)
{
	struct cairn_profile_sample s;

	if (in->n_value != r->in->n_sample_type)
		damaged(r, "another number of values than of types has sample", i);
	r->stack.n = 0;
	for (size_t k = 0; r->rc == 0 && k < in->n_location_id; k++) {
		uint32_t id = refer(r, &r->locations, in->location_id[k], "there is no location");

		if (!VEC_ADD(&r->stack, id))
			no_memory(r);
	}
	read_labels(r, in);
	s = (struct cairn_profile_sample){r->stack.p, r->stack.n, in->value, r->labels.p,
					  r->labels.n};
	if (r->rc == 0)
		r->rc = cairn_profile_add_sample(r->p, &s, r->err);
}

static void read_run(struct reader *r)
{
	struct cairn_profile_run run = {.time_ns = r->in->time_nanos,
					.duration_ns = r->in->duration_nanos,
					.period = r->in->period};

	if (r->in->period_type)
		run.each = (struct cairn_profile_type){string(r, r->in->period_type->type),
						       string(r, r->in->period_type->unit)};
	if (r->rc == 0)
		r->rc = cairn_profile_set_run(r->p, &run, r->err);
}

static void read_comments(struct reader *r)
{
	for (size_t i = 0; r->rc == 0 && i < r->in->n_comment; i++) {
		const char *text = string(r, r->in->comment[i]);

		if (r->rc == 0 && *text)
			r->rc = cairn_profile_add_comment(r->p, text, r->err);
	}
}

static void read_types(struct reader *r)
{
	struct cairn_profile_type types[64];
	size_t n = r->in->n_sample_type;

	if (n < 1 || n > 64) {
		damaged(r, "the number of types of values is", n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		types[i] = (struct cairn_profile_type){string(r, r->in->sample_type[i]->type),
						       string(r, r->in->sample_type[i]->unit)};
	if (r->rc == 0)
		r->rc = cairn_profile_new(types, n, &r->p, r->err);
}

static void read_all(struct reader *r)
{
	read_types(r);
	for (size_t i = 0; r->rc == 0 && i < r->in->n_mapping; i++)
		read_mapping(r, r->in->mapping[i]);
	for (size_t i = 0; r->rc == 0 && i < r->in->n_function; i++)
		read_function(r, r->in->function[i]);
	for (size_t i = 0; r->rc == 0 && i < r->in->n_location; i++)
		read_location(r, r->in->location[i]);
	for (size_t i = 0; r->rc == 0 && i < r->in->n_sample; i++)
		read_sample(r, r->in->sample[i], i);
	if (r->rc == 0)
		read_run(r);
	read_comments(r);
}

/* ---- memory of the messages ---- */

/*
 * A message of two bytes in the file takes 100 in memory: a file of 1 GiB could take 50. A profile
 * of a million stacks takes some 400 MB.
 */
#define MEMORY_MAX ((size_t)4 << 30)

static int refused(const struct messages_memory *memory, const char *name, struct cairn_err *err)
{
	if (memory->rc == -ENOMEM)
		return err_nomem(err, "the profile's messages");
	if (memory->rc == -ERANGE)
		return err_set(err, -ERANGE, "%s: its messages take more than 4 GiB of memory",
			       name);
	/* protobuf-c does not say why; almost always the bytes are something else. */
	return err_set(err, -EBADMSG, "%s: neither a profile of pprof nor folded stacks", name);
}

int profile_read_pprof(const void *bytes, size_t size, const char *name, struct cairn_profile **ret,
		       struct cairn_err *err)
{
	struct messages_memory memory = {.max = MEMORY_MAX};
	ProtobufCAllocator allocator = messages_allocator(&memory);
	CairnPprof__Profile *in = cairn_pprof__profile__unpack(&allocator, size, bytes);
	struct reader r = {.in = in, .name = name, .err = err};

	*ret = NULL;
	if (!in)
		return refused(&memory, name, err);
	read_all(&r);
	cairn_pprof__profile__free_unpacked(in, &allocator);
	map_fini(&r.mappings);
	map_fini(&r.functions);
	map_fini(&r.locations);
	VEC_FREE(&r.stack);
	VEC_FREE(&r.lines);
	VEC_FREE(&r.labels);
	if (r.rc < 0) {
		cairn_profile_close(r.p);
		return r.rc;
	}
	*ret = r.p;
	return 0;
}
