/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attributes of a struct, from its offsets
 *
 * Tried in this order, until one gives every offset and the size:
 *
 *  1. none but those that are written down
 *  2. packed, then #pragma pack(2), (4), (8): one for the whole struct is likelier than one per
 *	member
 *  3. member by member: one that lies further than expected was aligned, by the smallest power of 2
 *	that takes it there, or it follows bits or bytes without a name; one that lies nearer was
 *	packed
 *  4. the same in a packed struct
 *
 * A size that is larger than the members need is the struct's own alignment.
 *
 *	offsets 0 16 (char, int), size 32      int aligned(16)
 *	offsets 0 4, size 64                   the struct aligned(64)
 *
 * Only "at least" is proven: aligned(8) takes a member to byte 16 as well as aligned(16) when it
 * would have been at 9. The smallest is taken.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layout/place.h"
#include "layout/retarget.h"

enum {
	/* Member by member is quadratic. The kernel's largest structs have some 700 members. */
	MEMBERS_MAX_DEDUCED = 2048,
	ALIGN_MAX_DEDUCED = 1 << 16,
};

int place_plan(const struct cairn_abi *abi, int side, struct plan *plan,
	       struct cairn_place_record *ret)
{
	const struct cairn_deduced *d = &plan->deduced;
	struct cairn_place_member *members = calloc(plan->v.n + 1, sizeof(*members));
	int rc;

	if (!members)
		return -ENOMEM;
	for (size_t i = 0; i < plan->v.n; i++)
		members[i] = plan->v.p[i].place[side];
	*ret = (struct cairn_place_record){.members = members,
					   .n_members = plan->v.n,
					   .is_union = plan->is_union,
					   .packed = d->packed,
					   .pack = d->pack,
					   .aligned = d->aligned > plan->aligned ? d->aligned
										 : plan->aligned};
	rc = cairn_layout_place(abi, ret, NULL);
	for (size_t i = 0; i < plan->v.n; i++)
		plan->v.p[i].place[side].bit_off = members[i].bit_off;
	free(members);
	ret->members = NULL;
	return rc;
}

/* The first member that is elsewhere; the number of members when none is. */
static size_t first_wrong(const struct plan *plan, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!plan->v.p[i].filler && plan->v.p[i].place[0].bit_off != plan->v.p[i].wanted)
			return i;
	return n;
}

/* Members keep their offsets; finds the struct's own alignment for its size. */
static bool explain_size(struct plan *plan, const struct cairn_place_record *placed)
{
	uint64_t end = 0;

	if (placed->size == plan->size)
		return true;
	for (size_t i = 0; i < plan->v.n; i++) {
		const struct cairn_place_member *m = &plan->v.p[i].place[0];
		uint64_t at = m->bit_off + (m->bit_field ? m->width : 8 * m->size);

		end = max_u64(end, (at + 7) / 8);
	}
	for (uint32_t n = 2 * placed->align; n <= ALIGN_MAX_DEDUCED; n *= 2)
		if (round_up(end, n) == plan->size) {
			plan->deduced.aligned = n;
			return true;
		}
	return false;
}

/* 1: explained. */
static int try_whole(const struct cairn_abi *abi, struct plan *plan, bool packed, uint32_t pack)
{
	struct cairn_place_record placed;
	int rc;

	plan->deduced = (struct cairn_deduced){.packed = packed, .pack = pack};
	rc = place_plan(abi, 0, plan, &placed);
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	return first_wrong(plan, plan->v.n) == plan->v.n && explain_size(plan, &placed);
}

/* ---- member by member ---- */

/* Place the first @n members; whether the last of them is where it is to be. */
static int is_placed(const struct cairn_abi *abi, struct plan *plan, size_t n)
{
	size_t all = plan->v.n;
	struct cairn_place_record placed;
	int rc;

	plan->v.n = n;
	rc = place_plan(abi, 0, plan, &placed);
	plan->v.n = all;
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	return first_wrong(plan, n) == n;
}

/* Before member @i; 0 or -ENOMEM. */
static int insert_filler(struct plan *plan, size_t i, const struct cairn_place_member *filler)
{
	if (!VEC_PUSH(&plan->v))
		return -ENOMEM;
	memmove(&plan->v.p[i + 1], &plan->v.p[i], (plan->v.n - 1 - i) * sizeof(*plan->v.p));
	plan->v.p[i] = (struct planned){.place = {*filler, *filler}, .filler = true};
	return 0;
}

static void remove_filler(struct plan *plan, size_t i)
{
	plan->v.n--;
	memmove(&plan->v.p[i], &plan->v.p[i + 1], (plan->v.n - i) * sizeof(*plan->v.p));
}

static uint64_t end_of(const struct plan *plan, size_t i)
{
	const struct cairn_place_member *m = i ? &plan->v.p[i - 1].place[0] : NULL;

	return m ? m->bit_off + (m->bit_field ? m->width : 8 * m->size) : 0;
}

/* Tries "int : 0", the missing number of bits, and bytes: the first that takes member @i there. */
static int try_fillers(const struct cairn_abi *abi, struct plan *plan, size_t i)
{
	struct planned m = plan->v.p[i];
	uint64_t gap = m.wanted - end_of(plan, i);
	struct cairn_place_member fillers[] = {
		{.size = m.place[0].size, .align = m.place[0].align, .bit_field = true, .width = 0},
		{.size = m.place[0].size,
		 .align = m.place[0].align,
		 .bit_field = true,
		 .width = (uint32_t)gap},
		{.size = gap / 8, .align = 1},
	};

	for (size_t k = 0; k < sizeof(fillers) / sizeof(fillers[0]); k++) {
		const struct cairn_place_member *f = &fillers[k];
		int rc;

		if (f->bit_field ? !m.place[0].bit_field || gap > 8 * f->size : gap % 8 || !gap)
			continue;
		rc = insert_filler(plan, i, f);
		if (!rc)
			rc = is_placed(abi, plan, i + 2);
		if (rc) {
			plan->deduced.n_fillers++;
			return rc < 0 ? rc : 2;
		}
		remove_filler(plan, i);
	}
	return 0;
}

static void set_attributes(struct planned *m, bool packed, uint32_t aligned)
{
	for (int side = 0; side < 2; side++) {
		m->place[side].packed = packed;
		m->place[side].aligned = aligned;
	}
}

/*
 * How many entries of the plan it takes, a filler included; 0: nothing takes member @i to its
 * place.
 */
static int explain_member(const struct cairn_abi *abi, struct plan *plan, size_t i)
{
	struct planned *m = &plan->v.p[i];
	uint32_t written = m->written;
	int rc = is_placed(abi, plan, i + 1);

	if (rc)
		return rc;
	if (m->place[0].bit_off > m->wanted) {
		set_attributes(m, true, written);
		plan->deduced.n_packed++;
		rc = is_placed(abi, plan, i + 1);
		if (rc)
			return rc;
		set_attributes(m, false, written);
		plan->deduced.n_packed--;
		return 0;
	}
	for (uint32_t n = 2; n <= ALIGN_MAX_DEDUCED && !m->place[0].bit_field; n *= 2) {
		if (n <= m->place[0].align && !plan->deduced.packed)
			continue;
		set_attributes(m, false, n);
		rc = is_placed(abi, plan, i + 1);
		if (rc) {
			plan->deduced.n_aligned++;
			return rc;
		}
	}
	set_attributes(m, false, written);
	return try_fillers(abi, plan, i);
}

static int try_members(const struct cairn_abi *abi, struct plan *plan, bool packed)
{
	struct cairn_place_record placed;
	size_t i = 0;
	int rc = 0;

	plan->deduced = (struct cairn_deduced){.packed = packed};
	if (plan->is_union || plan->v.n > MEMBERS_MAX_DEDUCED)
		return 0;
	for (; i < plan->v.n; i += (size_t)rc) {
		rc = explain_member(abi, plan, i);
		if (rc <= 0)
			return rc;
	}
	rc = place_plan(abi, 0, plan, &placed);
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	return explain_size(plan, &placed);
}

static void forget(struct plan *plan)
{
	for (size_t i = 0; i < plan->v.n;) {
		if (plan->v.p[i].filler) {
			remove_filler(plan, i);
			continue;
		}
		set_attributes(&plan->v.p[i], false, plan->v.p[i].written);
		i++;
	}
}

int deduce(const struct cairn_abi *abi, struct plan *plan)
{
	static const struct {
		bool packed;
		uint32_t pack;
	} wholes[] = {{false, 0}, {true, 0}, {false, 2}, {false, 4}, {false, 8}};
	int rc = 0;

	for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]) && !rc; i++)
		rc = try_whole(abi, plan, wholes[i].packed, wholes[i].pack);
	for (int packed = 0; packed < 2 && !rc; packed++) {
		rc = try_members(abi, plan, packed);
		if (!rc)
			forget(plan);
	}
	if (!rc)
		plan->deduced = (struct cairn_deduced){.unexplained = true};
	return rc < 0 ? rc : 0;
}
