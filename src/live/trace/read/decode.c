/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a record to an event: for each value its bytes, or why there are none
 *
 * Everything in a record was written by our own BPF program; still every offset is checked against
 * the record's size, as a ring buffer shared with the kernel is no reason to trust arithmetic.
 */
#include <stdio.h>
#include <string.h>

#include "base/wide.h"
#include "trace/trace.h"

static const char text_unreadable[] = "memory cannot be read";
static const char text_no_result[] =
	"memory cannot be read, an index is not of its array, or a division by 0";

static const char text_no_return[] = "the call has not returned yet";

static void unreadable(struct decode_space *s, uint32_t i, uint64_t address, bool known)
{
	struct cairn_event_value *v = &s->values[i];

	v->state = CAIRN_VALUE_UNREADABLE;
	v->reason = text_unreadable;
	if (!known)
		return;
	v->reason = s->reasons[i];
	if (address)
		snprintf(s->reasons[i], sizeof(s->reasons[i]), "at 0x%llx",
			 (unsigned long long)address);
	else
		snprintf(s->reasons[i], sizeof(s->reasons[i]), "NULL");
}

static void decode_string(struct decode_space *s, uint32_t i, const struct value_layout *l,
			  const uint8_t *rec, bool fault)
{
	struct cairn_event_value *v = &s->values[i];
	uint64_t address;
	uint16_t len;

	memcpy(&address, rec + l->out, sizeof(address));
	memcpy(&len, rec + l->out + STRING_POINTER_BYTES, sizeof(len));
	if (fault) {
		unreadable(s, i, address, address != (uint64_t)VALUE_NO_ADDRESS);
		return;
	}
	v->truncated = len & TRACE_STRING_CUT;
	len &= (uint16_t)~TRACE_STRING_CUT;
	if (len > l->n_bytes)
		len = l->n_bytes;
	v->bytes = rec + l->out + STRING_POINTER_BYTES + STRING_LENGTH_BYTES;
	v->n_bytes = len ? len - 1u : 0; /* without the NUL */
	if (v->n_bytes > l->n_shown) {
		v->n_bytes = l->n_shown;
		v->truncated = true;
	}
}

/* Up to the character that is 0, which is looked for in what was read. */
static void decode_wide(struct decode_space *s, uint32_t i, const struct value_layout *l,
			const uint8_t *rec, bool fault)
{
	struct cairn_event_value *v = &s->values[i];
	uint64_t address, n = l->n_bytes;

	memcpy(&address, rec + l->out, sizeof(address));
	if (fault && address == (uint64_t)VALUE_NO_ADDRESS) {
		unreadable(s, i, 0, false);
		return;
	}
	if (fault)
		memcpy(&n, rec + l->out + 8, sizeof(n));
	n = n < l->n_bytes ? n : l->n_bytes;
	v->bytes = rec + l->out + BYTES_HEAD;
	v->n_bytes = (uint32_t)wide_length(v->bytes, n, l->unit);
	v->truncated = v->n_bytes > l->n_shown;
	if (v->truncated)
		v->n_bytes = (uint32_t)wide_cut(v->bytes, l->n_shown, l->unit);
	else if (v->n_bytes == n / l->unit * l->unit) /* it goes on where nothing can be read */
		unreadable(s, i, address, true);
}

static void decode_bytes(struct decode_space *s, uint32_t i, const struct value_layout *l,
			 const uint8_t *rec, bool fault)
{
	struct cairn_event_value *v = &s->values[i];
	uint64_t address, n;

	memcpy(&address, rec + l->out, sizeof(address));
	memcpy(&n, rec + l->out + 8, sizeof(n));
	if (fault) {
		unreadable(s, i, address, address != (uint64_t)VALUE_NO_ADDRESS);
		return;
	}
	v->bytes = rec + l->out + BYTES_HEAD;
	v->truncated = n > l->n_shown;
	v->n_bytes = v->truncated ? l->n_shown : (uint32_t)n;
}

/* False when not even the value could be read. */
static bool decode_targets(struct decode_space *s, uint32_t i, const struct value_layout *l,
			   const uint8_t *rec)
{
	struct cairn_event_value *v = &s->values[i];
	const uint8_t *state = rec + l->state;

	for (uint32_t k = 0; k < l->n_targets && state[0]; k++) {
		const struct target_layout *t = &l->targets[k];
		struct cairn_event_target *to = &s->targets[s->n_targets];
		struct recipe_target target;
		if (!recipe_target(&t->is.recipe, rec + l->out + t->is.off, &target))
			continue;
		*to = (struct cairn_event_target){.at = target.at};
		to->bytes = state[1 + k] ? rec + t->out : NULL;
		to->n_bytes = target.n_bytes < t->n_shown ? (uint32_t)target.n_bytes : t->n_shown;
		v->targets = v->targets ? v->targets : to;
		v->n_targets++;
		s->n_targets++;
	}
	return state[0];
}

/* Moves a bit-field down to bit 0 of bytes of its own. */
static void shift_bits(struct decode_space *s, uint32_t i, const struct value_layout *l)
{
	struct cairn_event_value *v = &s->values[i];
	unsigned __int128 bits = 0;

	memcpy(&bits, v->bytes, v->n_bytes < 9 ? v->n_bytes : 9);
	uint64_t value = (uint64_t)(bits >> l->bit_shift);
	if (l->bit_size < 64)
		value &= (UINT64_C(1) << l->bit_size) - 1;
	memcpy(s->bits[i], &value, sizeof(value));
	v->bytes = s->bits[i];
	v->n_bytes = (l->bit_size + 7u) / 8;
}

/* The end of a record of a trace that shows calls. */
static void decode_call(const struct trace_probe *p, const uint8_t *rec, struct decode_space *s)
{
	struct trace_call_ref ref;

	memcpy(&ref, rec + p->n_record - sizeof(ref), sizeof(ref));
	s->call = (struct cairn_event_call){.depth = ref.depth, .entered_ns = ref.entered_ns};
	if (ref.moment == TRACE_AT_ENTRY)
		s->call.moment = CAIRN_CALL_ENTRY;
	else if (ref.moment == TRACE_AT_RETURN)
		s->call.moment = CAIRN_CALL_RETURN;
	s->event.call = &s->call;
}

static void decode_value(const struct trace_probe *p, const struct trace_site *site, uint32_t i,
			 const uint8_t *rec, uint32_t faults, struct decode_space *s)
{
	const struct value_layout *l = &p->layouts[i];
	struct cairn_event_value *v = &s->values[i];
	bool fault = faults >> i & 1;

	*v = (struct cairn_event_value){.what = &p->pub.values[i]};
	if (site->pub.values[i].unavailable) {
		v->state = CAIRN_VALUE_UNAVAILABLE;
		v->reason = site->pub.values[i].unavailable;
		return;
	}
	if (v->what->at_return && s->event.call && s->call.moment == CAIRN_CALL_ENTRY) {
		v->state = CAIRN_VALUE_UNAVAILABLE;
		v->reason = text_no_return;
		return;
	}
	if (l->unit) {
		decode_wide(s, i, l, rec, fault);
		return;
	}
	if (p->pub.values[i].is_string) {
		decode_string(s, i, l, rec, fault);
		return;
	}
	if (p->pub.values[i].is_bytes) {
		decode_bytes(s, i, l, rec, fault);
		return;
	}
	if (l->n_targets ? !decode_targets(s, i, l, rec) : fault) {
		unreadable(s, i, 0, false);
		v->reason = p->pub.values[i].is_number ? text_no_result : v->reason;
		return;
	}
	v->bytes = site->constants[i].bytes ? site->constants[i].bytes : rec + l->out;
	v->n_bytes = l->n_bytes;
	v->truncated = l->cut;
	if (l->bit_size)
		shift_bits(s, i, l);
}

bool decode_record(const struct cairn_trace *t, const struct trace_record *rec, size_t n_bytes,
		   struct decode_space *s)
{
	if (n_bytes < sizeof(*rec) || rec->site >= t->sites.n)
		return false;
	const struct trace_site *site = t->sites.p[rec->site];
	const struct trace_probe *p = t->probes.p[site->pub.probe];
	if (n_bytes < p->n_record || site->pub.refused)
		return false;
	s->event = (struct cairn_event){
		.time_ns = rec->time_ns,
		.since_ns = rec->time_ns > t->attached_at_ns ? rec->time_ns - t->attached_at_ns : 0,
		.pid = rec->pid,
		.tid = rec->tid,
		.probe = &p->pub,
		.site = &site->pub,
		.n_values = p->pub.n_values,
		.values = s->values,
		.show_name = t->opts.show_name,
		.time = t->opts.time,
		.format = t->format,
		.style = &t->style,
	};
	s->n_targets = 0;
	memcpy(s->event.comm, rec->comm, sizeof(s->event.comm));
	s->event.comm[sizeof(s->event.comm) - 1] = 0;
	if (t->opts.shows_calls)
		decode_call(p, (const uint8_t *)rec, s);
	s->event.at_return = s->event.call ? s->call.moment == CAIRN_CALL_RETURN : site->follows;
	for (uint32_t i = 0; i < p->pub.n_values; i++)
		decode_value(p, site, i, (const uint8_t *)rec, rec->faults, s);
	return true;
}
