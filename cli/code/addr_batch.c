/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many addresses at once
 *
 * Addresses in any order load a sidecar's pages from all over memory, and waiting for these is most
 * of a lookup's cost. So the addresses of a batch are looked up in order of address: then pages,
 * frames and functions are consecutive, and equal addresses, as in samples, are looked up once.
 * Answers are kept and written in the order of the input:
 *
 *	read        0x30 0x10 0x30 0x20
 *	queried     0x10 0x20 0x30              (1, 3, 0)
 *	written     0x30 0x10 0x30 0x20         (0: answer 2, 1: answer 0, 2: answer 2, 3: answer 1)
 *
 * The order is found by a radix sort, byte by byte from the lowest; a byte that all addresses share
 * is passed over.
 */
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "cmd.h"
#include "text.h"

struct kept {
	uint64_t vaddr;
	const char *path;
	const struct cairn_code_range *code;
	size_t from; /* first of its frames */
	uint32_t n;
	uint32_t n_begin;
	size_t begin; /* first of its names of copies that begin there */
};

struct key {
	uint64_t addr;
	uint32_t item;
};

struct addr_batch {
	struct key *keys, *spare;
	size_t n, room;
	uint32_t *answer_of; /* by item */
	struct kept *kept;
	size_t n_kept;
	struct cairn_frame *frames;
	size_t n_frames, frames_room;
	const char **begin; /* names of copies */
	size_t n_begin, begin_room;
};

struct addr_batch *addr_batch_new(size_t room)
{
	struct addr_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->room = room;
	b->keys = malloc(room * sizeof(*b->keys));
	b->spare = malloc(room * sizeof(*b->spare));
	b->answer_of = malloc(room * sizeof(*b->answer_of));
	b->kept = malloc(room * sizeof(*b->kept));
	if (b->keys && b->spare && b->answer_of && b->kept)
		return b;
	addr_batch_free(b);
	return NULL;
}

void addr_batch_free(struct addr_batch *b)
{
	if (!b)
		return;
	free(b->keys);
	free(b->spare);
	free(b->answer_of);
	free(b->kept);
	free(b->frames);
	free(b->begin);
	free(b);
}

bool addr_batch_add(struct addr_batch *b, uint64_t addr)
{
	b->keys[b->n] = (struct key){addr, (uint32_t)b->n};
	return ++b->n == b->room;
}

/* ---- order ---- */

/* Orders by the byte at @shift; false when it is the same everywhere. */
static bool sort_by_byte(const struct key *from, struct key *to, size_t n, unsigned int shift)
{
	size_t starts[257] = {0};

	for (size_t i = 0; i < n; i++)
		starts[(from[i].addr >> shift & 255) + 1]++;
	if (starts[(from[0].addr >> shift & 255) + 1] == n)
		return false;
	for (int i = 0; i < 256; i++)
		starts[i + 1] += starts[i];
	for (size_t i = 0; i < n; i++)
		to[starts[from[i].addr >> shift & 255]++] = from[i];
	return true;
}

static void sort(struct addr_batch *b)
{
	for (unsigned int shift = 0; shift < 64 && b->n > 1; shift += 8) {
		struct key *keys = b->keys;

		if (!sort_by_byte(keys, b->spare, b->n, shift))
			continue;
		b->keys = b->spare;
		b->spare = keys;
	}
}

/* ---- asking ---- */

/* Room for one more answer. */
static bool grow_frames(struct addr_batch *b)
{
	size_t room = b->frames_room ? 2 * b->frames_room : 4096;
	struct cairn_frame *grown;

	if (b->n_frames + CAIRN_FRAMES_MAX <= b->frames_room)
		return true;
	grown = realloc(b->frames, room * sizeof(*grown));
	if (!grown)
		return false;
	b->frames = grown;
	b->frames_room = room;
	return true;
}

/* The names of one answer; few have any. */
static bool keep_begin(struct addr_batch *b, const struct addr_answer *answer)
{
	size_t room = b->begin_room ? 2 * b->begin_room : 1024;
	const char **grown;

	if (b->n_begin + answer->n_begin > b->begin_room) {
		grown = realloc(b->begin, room * sizeof(*grown));
		if (!grown)
			return false;
		b->begin = grown;
		b->begin_room = room;
	}
	for (size_t i = 0; i < answer->n_begin; i++)
		b->begin[b->n_begin++] = answer->begin[i];
	return true;
}

static bool ask(struct addr_batch *b, struct addr_space *space, bool back, uint64_t addr)
{
	struct addr_answer answer;

	if (!grow_frames(b))
		return false;
	answer.frames = b->frames + b->n_frames;
	addr_space_ask(space, addr, back, b->frames + b->n_frames, &answer);
	b->kept[b->n_kept++] = (struct kept){.vaddr = answer.vaddr,
					     .path = answer.path,
					     .code = answer.code,
					     .from = b->n_frames,
					     .n = (uint32_t)answer.n};
	b->n_frames += answer.n;
	b->kept[b->n_kept - 1].begin = b->n_begin;
	b->kept[b->n_kept - 1].n_begin = (uint32_t)answer.n_begin;
	return !answer.n_begin || keep_begin(b, &answer);
}

/* ---- writing ---- */

/*
 * Answers, frames, names and paths are all over memory, too. Those of later items are prefetched,
 * each once the data that leads to it has come.
 */
static void will_need(const struct addr_batch *b, size_t item)
{
	enum { NAMES_AHEAD = 8, FRAMES_AHEAD = 16, ANSWERS_AHEAD = 24 };

	if (item + ANSWERS_AHEAD >= b->n)
		return;
	const struct kept *names = &b->kept[b->answer_of[item + NAMES_AHEAD]];
	const struct kept *frames = &b->kept[b->answer_of[item + FRAMES_AHEAD]];

	__builtin_prefetch(&b->kept[b->answer_of[item + ANSWERS_AHEAD]]);
	__builtin_prefetch(b->frames + frames->from);
	__builtin_prefetch((const char *)(b->frames + frames->from + frames->n) - 1);
	for (uint32_t i = 0; i < names->n; i++) {
		__builtin_prefetch(b->frames[names->from + i].function);
		__builtin_prefetch(b->frames[names->from + i].file);
	}
}

/* A hundred thousand addresses are common, so stdio gets many answers at once. */
static void write_all(struct addr_batch *b, addr_writer *writer, struct addr_tally *tally)
{
	char buf[8192];
	struct text to = {.out = stdout, .buf = buf, .size = sizeof(buf)};
	uint64_t *addr_of = (uint64_t *)b->spare; /* no longer needed, and larger */

	for (size_t i = 0; i < b->n; i++)
		addr_of[b->keys[i].item] = b->keys[i].addr;
	for (size_t i = 0; i < b->n; i++) {
		const struct kept *k = &b->kept[b->answer_of[i]];
		struct addr_answer answer = {.addr = addr_of[i],
					     .path = k->path,
					     .vaddr = k->vaddr,
					     .code = k->code,
					     .n = k->n,
					     .frames = b->frames + k->from,
					     .n_begin = k->n_begin};

		for (uint32_t n = 0; n < k->n_begin; n++)
			answer.begin[n] = b->begin[k->begin + n];
		will_need(b, i);
		*(k->n || k->n_begin ? &tally->n_known : &tally->n_unknown) += 1;
		writer(&to, &answer);
	}
	text_flush(&to);
}

int addr_batch_answer(struct addr_batch *b, struct addr_space *space, bool back,
		      addr_writer *writer, struct addr_tally *tally)
{
	bool ok = true;

	sort(b);
	b->n_kept = b->n_frames = b->n_begin = 0;
	for (size_t i = 0; ok && i < b->n; i++) {
		if (!i || b->keys[i].addr != b->keys[i - 1].addr)
			ok = ask(b, space, back, b->keys[i].addr);
		b->answer_of[b->keys[i].item] = (uint32_t)b->n_kept - 1;
	}
	if (!ok)
		return fail(STATUS_NOT_HERE, "no memory");
	write_all(b, writer, tally);
	b->n = 0;
	fflush(stdout);
	return STATUS_YES;
}
