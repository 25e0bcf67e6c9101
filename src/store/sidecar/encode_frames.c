/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames: which function was inlined into which
 *
 * Frames are numbered in the order of units, in each a parent before its children. A call stands in
 * the function that it was inlined into: so its file is that function's, and its line is near to
 * that function's declaration.
 *
 *     17  out of line: ext4_sync_file, fsync.c:120: distance 0, function 675
 *     18  in 17: trace_ext4_sync_file_enter: distance 1, function 1585, line + 13 (26), column 2
 *     19  in 18: static_key_false: distance 1, function 7, line + 0 (0), column 5
 *
 * Blocks of 16 have their own widths for the distance to the parent, the line and the column: these
 * three take 2 + 5 + 3 bits each. The function takes as many bits as all functions need. If a block
 * has a call in another file than its function (a body made by an included file), each of its
 * frames has its file, too.
 */
#include "sidecar/bits_out.h"
#include "sidecar/encode.h"
#include "sidecar/format.h"

/* The written form. */
struct frame_record {
	uint32_t distance, function, line, column;
	uint32_t own_file; /* 1 + the file, and line is not relative; 0: the parent's function's */
};

uint32_t function_of_frame(const struct joined *j, size_t unit, uint32_t frame)
{
	uint32_t function = j->units[unit].frames.p[frame].function;
	return function == NO_FUNCTION ? 0 : j->numbers[unit].function[function];
}

static struct frame_record record_of(const struct joined *j, size_t unit, uint32_t i)
{
	const struct unit_frame *f = &j->units[unit].frames.p[i];
	struct frame_record r = {
		.function = j->functions.ranking.rank.p[function_of_frame(j, unit, i)]};
	if (f->parent == NO_FRAME)
		return r;
	const struct function_entry *around =
		&j->functions.v.p[function_of_frame(j, unit, f->parent)];
	uint32_t file = j->numbers[unit].file[f->call_file];
	r.distance = i - f->parent;
	r.column = f->call_column;
	r.own_file = file == around->file ? 0 : 1 + j->files.ranking.rank.p[file];
	r.line = r.own_file ? f->call_line : fold(f->call_line - around->line);
	return r;
}

/* The state that all blocks share. */
struct frame_writer {
	unsigned int function_width, file_width;
	struct bytes data;
};

static void put_block(struct frame_writer *w, const struct frame_record *r, size_t n)
{
	uint32_t distance = 0, line = 0, column = 0, own = 0;
	struct bits_out out = {.to = &w->data};
	for (size_t i = 0; i < n; i++) {
		distance |= r[i].distance;
		line |= r[i].line;
		column |= r[i].column;
		own |= r[i].own_file;
	}
	put_bits(&out, bits_width(distance), FRAMES_WIDTH_WIDTH);
	put_bits(&out, bits_width(line), FRAMES_WIDTH_WIDTH);
	put_bits(&out, bits_width(column), FRAMES_WIDTH_WIDTH);
	put_bits(&out, own != 0, 1);
	for (size_t i = 0; i < n; i++) {
		put_bits(&out, r[i].function, w->function_width);
		put_bits(&out, r[i].distance, bits_width(distance));
		put_bits(&out, r[i].line, bits_width(line));
		put_bits(&out, r[i].column, bits_width(column));
		put_bits(&out, r[i].own_file, own ? w->file_width : 0);
	}
	end_bits(&out);
}

void encode_frames(const struct joined *j, struct bytes *ret)
{
	struct frame_writer w = {.function_width = bits_width((uint32_t)j->functions.v.n - 1),
				 .file_width = bits_width((uint32_t)j->files.path.n)};
	struct frame_record block[SIDECAR_FRAMES_PER_BLOCK];
	VEC(uint32_t) starts = {0};
	size_t n = 0;
	bool ok = VEC_ADD(&starts, 0);
	for (size_t u = 0; u < j->n_units; u++)
		for (uint32_t i = 0; i < j->units[u].frames.n; i++) {
			block[n++] = record_of(j, u, i);
			if (n < SIDECAR_FRAMES_PER_BLOCK)
				continue;
			put_block(&w, block, n);
			ok &= VEC_ADD(&starts, (uint32_t)w.data.v.n);
			n = 0;
		}
	if (n) {
		put_block(&w, block, n);
		ok &= VEC_ADD(&starts, (uint32_t)w.data.v.n);
	}
	ret->failed |= !ok || w.data.failed || w.data.v.n > UINT32_MAX - BITS_SLACK;
	if (!ret->failed) {
		put_table(starts.p, starts.n, 1, ret);
		put_bytes(ret, w.data.v.p, w.data.v.n);
		put_zeroes(ret, BITS_SLACK);
	}
	VEC_FREE(&starts);
	VEC_FREE(&w.data.v);
}
