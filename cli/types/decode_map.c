/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries of the maps of BPF programs. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "decode.h"
#include "near.h"
#include "say.h"

struct map_view {
	const struct decode_values *values;
	struct cairn_bpfmap *map;
	struct cairn_bpfmap_info info;
	struct cairn_decode *key, *value; /* NULL: bytes */
	/* of a section, the only one that is wanted; no name: all of the value */
	struct cairn_member variable;
	uint64_t variable_size;
	struct layout_source source;
	bool has_source;
	struct cairn_text_out out;
	uint64_t n_bad;
};

/* ---- entries ---- */

static void put_bytes(struct cairn_text_out *out, const uint8_t *bytes, size_t n, bool json)
{
	static const char digits[] = "0123456789abcdef";

	decode_put(out, json ? "\"" : "");
	for (size_t i = 0; i < n; i++)
		cairn_text_put(out, (char[]){digits[bytes[i] >> 4], digits[bytes[i] & 15]}, 2);
	decode_put(out, json ? "\"" : "");
}

static void put(struct map_view *m, const struct cairn_decode *decode, const uint8_t *bytes,
		size_t n)
{
	if (decode)
		cairn_decode_run(decode, bytes, n, &m->out);
	else
		put_bytes(&m->out, bytes, n, m->values->json);
}

static void put_value(struct map_view *m, const uint8_t *bytes, size_t n)
{
	if (m->variable.name)
		put(m, m->value, bytes + m->variable.bit_off / 8, m->variable_size);
	else
		put(m, m->value, bytes, n);
}

static void put_values(struct map_view *m, const struct cairn_bpfmap_entry *e)
{
	if (!m->info.is_percpu) {
		put_value(m, e->value, e->n_value);
		return;
	}
	decode_put(&m->out, m->values->json ? "[" : "{");
	for (uint32_t i = 0; i < e->n_cpus; i++) {
		if (i)
			decode_put(&m->out, m->values->json ? "," : ", ");
		put_value(m, e->value + (size_t)i * e->stride, e->n_value);
	}
	decode_put(&m->out, m->values->json ? "]" : "}");
}

static void put_owner(struct map_view *m, const struct cairn_bpfmap_owner *owner)
{
	bool json = m->values->json;
	char text[64];

	snprintf(text, sizeof(text),
		 json ? "{\"owner\":\"%s\",\"id\":%" PRIu64 ",\"name\":" : "%s %" PRIu64 " ",
		 owner->kind, owner->id);
	decode_put(&m->out, text);
	cairn_text_quote(&m->out, owner->name, strlen(owner->name), json);
	decode_put(&m->out, json ? ",\"value\":" : ": ");
}

/* A record of a ring is the value alone: its length is not the map's. */
static bool is_right(struct map_view *m, const struct cairn_bpfmap_entry *e)
{
	struct cairn_err err = {0};

	if (!m->info.is_ring || !m->value ||
	    cairn_decode_check(m->value, e->n_value, CAIRN_RECORD_EXACT, &err) == 0)
		return true;
	m->n_bad++;
	fail_lines(STATUS_DAMAGED, err.msg, "map %u (%s): a record of ", m->info.id, m->info.name);
	return false;
}

static int on_entry(void *ctx, const struct cairn_bpfmap_entry *e)
{
	struct map_view *m = ctx;
	bool json = m->values->json;

	if (!is_right(m, e))
		return 0;
	if (e->owner) {
		put_owner(m, e->owner);
	} else if (e->key && !m->info.is_section) {
		decode_put(&m->out, json ? "{\"key\":" : "");
		put(m, m->key, e->key, m->info.key_size);
		decode_put(&m->out, !json               ? ": "
				    : m->info.is_percpu ? ",\"values\":"
							: ",\"value\":");
	}
	put_values(m, e);
	decode_put(&m->out, (e->owner || (e->key && !m->info.is_section)) && json ? "}\n" : "\n");
	return m->out.failed;
}

/* ---- types ---- */

/* A type of the file for the values. */
static int plan_of_file(struct map_view *m, const char *path, const char *type)
{
	struct cairn_source_list list = {0};
	const struct cairn_abi *abi =
		cairn_abi_find(m->values->file.abi ? m->values->file.abi : "bpf");

	if (!abi)
		return fail(STATUS_USAGE, "no such ABI is known: %s", m->values->file.abi);
	m->has_source = true;
	int status = layout_open(path, abi, &m->values->file, &m->source);
	if (!status)
		status = layout_select_value(m->source.source, type, &list);
	if (!status)
		status = decode_plan(m->values, cairn_source_types(m->source.source), list.ids[0],
				     m->source.source, &m->value);
	free(list.ids);
	return status;
}

/* A variable of a section; false: it has none of that name. *@status when it has. */
static bool plan_of_variable(struct map_view *m, const char *name, int *status)
{
	struct cairn_member found;

	if (!m->info.is_section ||
	    !cairn_types_member(m->info.types, m->info.value_type, name, &found))
		return false;
	m->variable_size = cairn_types_size(m->info.types, found.type);
	if (!m->variable_size || found.bit_off / 8 > m->info.value_size ||
	    m->variable_size > m->info.value_size - found.bit_off / 8) {
		*status = fail(STATUS_DAMAGED,
			       "%s is not in the %u bytes of map %u (%s), as its BTF has it", name,
			       m->info.value_size, m->info.id, m->info.name);
		return true;
	}
	m->variable = found;
	*status = decode_plan(m->values, m->info.types, found.type, NULL, &m->value);
	return true;
}

static int plan_of_programs(struct map_view *m, const char *type)
{
	const struct cairn_types *types;
	struct cairn_err err = {0};
	uint32_t id;
	int rc = cairn_bpfmap_find_type(m->map, type, &types, &id, &err);

	if (rc < 0) {
		const char *near[SUGGESTIONS_MAX];
		int status = fail_err(rc, &err, STATUS_NO);

		if (rc == -ENOENT)
			say_near(near,
				 (int)cairn_bpfmap_suggest(m->map, type, near, SUGGESTIONS_MAX));
		return status;
	}
	return decode_plan(m->values, types, id, NULL, &m->value);
}

/* Keys are numbers and small structs, in which unions are not chosen from. */
static int plan_of_map(struct map_view *m)
{
	struct decode_values for_keys = *m->values;
	int status = STATUS_YES;

	for_keys.choices = (struct opt_list){0};
	if (m->info.types && m->info.key_type)
		status = decode_plan(&for_keys, m->info.types, m->info.key_type, NULL, &m->key);
	if (!status && !m->value && m->info.types)
		status = decode_plan(m->values, m->info.types, m->info.value_type, NULL, &m->value);
	return status;
}

static bool has_size(const struct cairn_decode *decode, uint64_t size)
{
	return cairn_decode_is_flexible(decode) ? cairn_decode_size(decode) <= size
						: cairn_decode_size(decode) == size;
}

static int make_plans(struct map_view *m, const struct operands *operands)
{
	int status = STATUS_YES;

	if (operands->n > 2)
		return fail(STATUS_USAGE, "with --map, name at most the file that has the type, "
					  "and the type: FILE TYPE");
	if (operands->n == 2)
		status = plan_of_file(m, operands->items[0], operands->items[1]);
	else if (operands->n == 1 && !plan_of_variable(m, operands->items[0], &status))
		status = plan_of_programs(m, operands->items[0]);
	else if (!operands->n && m->info.is_ring)
		return fail(STATUS_USAGE,
			    "map %u (%s) is a ring buffer, whose records have no type of their "
			    "own; name it: "
			    "cairn decode --map %u 'struct event'",
			    m->info.id, m->info.name, m->info.id);
	if (!status)
		status = plan_of_map(m);
	if (!status && m->value && !m->info.is_ring && !m->variable.name &&
	    !has_size(m->value, m->info.value_size))
		status = fail(STATUS_NO, "the type has %s, the values of map %u (%s) have %u",
			      cairn_counted(cairn_decode_size(m->value), "byte").text, m->info.id,
			      m->info.name, m->info.value_size);
	if (!status && !m->value)
		fail(0,
		     "map %u (%s) has no BTF: its entries are shown as bytes; give their type as "
		     "FILE TYPE",
		     m->info.id, m->info.name);
	return status;
}

/* ---- entry ---- */

/* The objects that were searched: the kernel lists no owners, see bpfmap.h. */
static const char *owners_of(const char *kind)
{
	if (!strcmp(kind, "task_storage"))
		return "threads";
	if (!strcmp(kind, "cgrp_storage"))
		return "cgroups";
	return !strcmp(kind, "sk_storage") ? "sockets that processes hold open"
					   : "files that processes hold open";
}

static void report(const struct map_view *m, const struct cairn_bpfmap_stats *s)
{
	if (s->busy || s->discarded || s->overtaken)
		say(stderr,
		    "cairn: %s; %" PRIu64 " still being written, %" PRIu64
		    " discarded by their program, and the reader overtook this one %s\n",
		    cairn_counted(s->entries, "record").text, s->busy, s->discarded,
		    cairn_counted(s->overtaken, "time").text);
	if (m->info.has_owners)
		say(stderr, "cairn: %s of %" PRIu64 " %s\n",
		    cairn_counted(s->entries, "value").text, s->owners,
		    owners_of(m->info.kind_name));
	if ((m->info.kind == 22 || m->info.kind == 23) && s->entries && !m->values->consume)
		say(stderr,
		    "cairn: of a %s only the next entry can be seen without taking it out\n",
		    m->info.kind_name);
}

int decode_map(const struct decode_values *values, const struct operands *operands)
{
	struct map_view m = {.values = values};
	struct cairn_bpfmap_stats stats = {0};
	struct cairn_err err = {0};
	int rc = cairn_bpfmap_open(values->map, &m.map, &err);

	if (rc < 0)
		return rc == -ENOTUNIQ ? fail_told(STATUS_USAGE, &err)
				       : fail_err(rc, &err, STATUS_NO);
	cairn_bpfmap_info(m.map, &m.info);
	int status = m.info.refused ? fail(STATUS_NOT_HERE, "map %u (%s) is a %s: %s", m.info.id,
					   m.info.name, m.info.kind_name, m.info.refused)
				    : make_plans(&m, operands);
	if (!status) {
		decode_out_init(&m.out);
		rc = cairn_bpfmap_each(m.map, values->consume, on_entry, &m, &stats, &err);
		decode_out_finish(&m.out);
		if (rc < 0 && !m.out.failed)
			status = fail_err(rc, &err, STATUS_NO);
		report(&m, &stats);
	}
	cairn_decode_free(m.key);
	cairn_decode_free(m.value);
	if (m.has_source)
		layout_close(&m.source);
	cairn_bpfmap_close(m.map);
	return status ? status : m.n_bad ? STATUS_DAMAGED : STATUS_YES;
}
