/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames: who was inlined into whom
 *
 * Frames are numbered in the order of units, in each a parent before its children. A frame is some 6 bytes; blocks
 * of 4 have an index, so that one is found by decoding 2 others on average. Its parent is near, its call mostly in the
 * file of the call before it:
 *
 *	17  out of line: ext4_sync_file           00  a3 05
 *	18  in 17: trace_ext4_sync_file_enter     41  b1 0c  e2 01 02         same file, line +113, column 2
 *	19  in 18: static_key_false               01  07  2a  f0 03 05        another file, line +248
 */
#include "pack/encode.h"

/* The copy before in the block: what the next one is likely to be near. */
struct call {
	uint32_t file, line;
};

static void put_frame(const struct joined *j, size_t unit, uint32_t i, struct call *before, struct bytes *b)
{
	const struct unit_frame *f = &j->units[unit].frames.p[i];
	const struct unit_numbers *n = &j->numbers[unit];
	uint32_t function = f->function == NO_FUNCTION ? 0 : n->function[f->function];
	uint32_t file = j->files.ranking.rank.p[n->file[f->call_file]];
	bool copy = f->parent != NO_FRAME;
	uint32_t distance = copy ? i - f->parent : 0;
	bool same = copy && file == before->file;
	put_u8(b, (uint8_t)((distance < PACK_PARENT_MORE ? distance : PACK_PARENT_MORE) | (same ? PACK_SAME_FILE : 0)));
	if (distance >= PACK_PARENT_MORE)
		put_uleb(b, distance - PACK_PARENT_MORE);
	put_uleb(b, j->functions.ranking.rank.p[function]);
	if (!copy)
		return;
	if (!same)
		put_uleb(b, file);
	put_uleb(b, fold(f->call_line - before->line));
	put_small(b, f->call_column);
	*before = (struct call){file, f->call_line};
}

void encode_frames(const struct joined *j, struct bytes *ret)
{
	struct bytes data = {0};
	uint32_t number = 0;
	struct call before = {0};
	for (size_t u = 0; u < j->n_units; u++)
		for (uint32_t i = 0; i < j->units[u].frames.n; i++) {
			if (number++ % PACK_FRAMES_PER_BLOCK == 0) {
				put_u32(ret, (uint32_t)data.v.n);
				before = (struct call){0};
			}
			put_frame(j, u, i, &before, &data);
		}
	put_u32(ret, (uint32_t)data.v.n);
	if (data.v.n > UINT32_MAX)
		ret->failed = true;
	put_bytes(ret, data.v.p, data.v.n);
	ret->failed |= data.failed;
	VEC_FREE(&data.v);
}
