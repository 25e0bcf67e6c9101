/* SPDX-License-Identifier: BSD-2-Clause */
#include "stack_memo.h"

#include <stdlib.h>
#include <string.h>

enum {
	FIRST_SLOTS = 256,
	FIRST_TEXT = 1 << 14,
};

static bool is_same(const struct stack_memo_key *a, const struct stack_memo_key *b)
{
	return a->vaddr == b->vaddr && a->bin == b->bin && a->pc == b->pc;
}

/* The slot of @key, or the empty one where it belongs. */
static struct stack_memo_entry *slot_of(struct stack_memo_entry *slots, size_t n_slots,
					const struct stack_memo_key *key)
{
	uint64_t h = (key->vaddr ^ (uintptr_t)key->bin) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (h >> 32) & (n_slots - 1);

	while (slots[i].key.bin && !is_same(&slots[i].key, key))
		i = (i + 1) & (n_slots - 1);
	return &slots[i];
}

bool stack_memo_find(const struct stack_memo *memo, const struct stack_memo_key *key,
		     struct stack_lines *ret)
{
	const struct stack_memo_entry *e;

	if (!memo->n_slots)
		return false;
	e = slot_of(memo->slots, memo->n_slots, key);
	if (!e->key.bin)
		return false;
	*ret = (struct stack_lines){memo->text + e->at, e->n, e->n_lines};
	return true;
}

static bool grow_slots(struct stack_memo *memo)
{
	size_t n = memo->n_slots ? memo->n_slots * 2 : FIRST_SLOTS;
	struct stack_memo_entry *slots;

	if (memo->n_used < memo->n_slots / 2)
		return true;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < memo->n_slots; i++)
		if (memo->slots[i].key.bin)
			*slot_of(slots, n, &memo->slots[i].key) = memo->slots[i];
	free(memo->slots);
	memo->slots = slots;
	memo->n_slots = n;
	return true;
}

static bool grow_text(struct stack_memo *memo, size_t n)
{
	size_t room = memo->text_room ? memo->text_room : FIRST_TEXT;
	char *text;

	if (n <= memo->text_room - memo->n_text)
		return true;
	while (room - memo->n_text < n)
		room *= 2;
	text = realloc(memo->text, room);
	if (!text)
		return false;
	memo->text = text;
	memo->text_room = room;
	return true;
}

void stack_memo_put(struct stack_memo *memo, const struct stack_memo_key *key,
		    const struct stack_lines *lines)
{
	if (!grow_slots(memo) || !grow_text(memo, lines->n))
		return;
	*slot_of(memo->slots, memo->n_slots, key) =
		(struct stack_memo_entry){*key, memo->n_text, lines->n, lines->n_lines};
	memcpy(memo->text + memo->n_text, lines->text, lines->n);
	memo->n_text += lines->n;
	memo->n_used++;
}

void stack_memo_fini(struct stack_memo *memo)
{
	free(memo->slots);
	free(memo->text);
	*memo = (struct stack_memo){0};
}
