/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the verb decode. */
#ifndef CLI_DECODE_H
#define CLI_DECODE_H

#include <cairn/bpfmap.h>
#include <cairn/decode.h>

#include "cmd.h"
#include "layout.h"

struct decode_values {
	struct layout_values file; /* how FILE is opened */
	struct opt_list choices;
	const char *map, *format, *field;
	unsigned long record_size, max_elems;
	bool ring, perf, consume, json, hex, padding, raw;
};

/* Values of one type on their way to standard output. */
struct decode_sink {
	const struct decode_values *values;
	struct cairn_decode *decode;
	struct cairn_text_out out;
	uint64_t n_bad; /* records that were refused */
};

/* ---- decode_plan.c ---- */

/* A plan as the options say; an exit status. */
int decode_plan(const struct decode_values *values, const struct cairn_types *types, uint32_t id,
		const struct cairn_source *source, struct cairn_decode **ret);

/* To standard output; if a write fails, cairn's exit reports it. */
void decode_out_init(struct cairn_text_out *out);
void decode_out_finish(struct cairn_text_out *out);

static inline void decode_put(struct cairn_text_out *out, const char *text)
{
	cairn_text_put(out, text, __builtin_strlen(text));
}

/* ---- decode_input.c ---- */

/* All records of a file, or of standard input when @path is "-"; an exit status. */
int decode_input(struct decode_sink *sink, const char *path);

/* ---- decode_map.c ---- */

/* The entries of a map; an exit status. */
int decode_map(const struct decode_values *values, const struct operands *operands);

#endif
