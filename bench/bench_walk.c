/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast all DIEs of a file are read, beside libdw in the same run
 *
 *	bench_walk FILE [THREADS [alone]]
 *
 * Four ways, best of five each:
 *
 *	step      the walker steps over every DIE and delivers none
 *	deliver   it delivers every DIE
 *	types     it delivers what an encoder of types wants, and reads names, sizes, references and lines
 *	libdw     child and sibling links over every DIE (one thread: Debian 12's libdw is not safe for more)
 *
 * "types" is done with libdw, too, attribute by attribute, and both must come to the same sum.
 */
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/pool.h"
#include "dwarf/constants.h"
#include "dwarf/walk.h"

enum { RUNS = 5, DEPTH_MAX = 512 };

enum {
	NAME,
	TYPE,
	ORIGIN,
	SIZE,
	LINE,
	MEMBER_LOCATION,
	UPPER_BOUND,
	CONST_VALUE,
	LOW_PC,
	HIGH_PC,
	N_SLOTS
};
/* clang-format off */
static const uint16_t attrs[N_SLOTS] = {
	DW_AT_name,	   DW_AT_type,	      DW_AT_abstract_origin,	  DW_AT_byte_size,
	DW_AT_decl_line,   DW_AT_data_member_location, DW_AT_upper_bound, DW_AT_const_value,
	DW_AT_low_pc,	   DW_AT_high_pc,
};
/* clang-format on */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint8_t role_none(uint16_t tag)
{
	return DW_ROLE_PASS;
}

static uint8_t role_all(uint16_t tag)
{
	return 1;
}

/* What an encoder of types and places reads of each kind of DIE: a set of slots. */
#define BIT(slot) (1u << (slot))
enum role { TYPED = 1, SIZED, MEMBER, ENUMERATOR, SUBRANGE, FUNCTION, N_ROLES };
static const unsigned int wanted[N_ROLES] = {
	[TYPED] = BIT(NAME) | BIT(TYPE) | BIT(ORIGIN),
	[SIZED] = BIT(NAME) | BIT(SIZE) | BIT(LINE),
	[MEMBER] = BIT(NAME) | BIT(TYPE) | BIT(MEMBER_LOCATION),
	[ENUMERATOR] = BIT(NAME) | BIT(CONST_VALUE),
	[SUBRANGE] = BIT(UPPER_BOUND),
	[FUNCTION] = BIT(NAME) | BIT(TYPE) | BIT(ORIGIN) | BIT(LINE) | BIT(LOW_PC) | BIT(HIGH_PC),
};

static uint8_t role_types(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_pointer_type:
	case DW_TAG_typedef:
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_array_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_formal_parameter:
		return TYPED;
	case DW_TAG_base_type:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return SIZED;
	case DW_TAG_member:
		return MEMBER;
	case DW_TAG_enumerator:
		return ENUMERATOR;
	case DW_TAG_subrange_type:
		return SUBRANGE;
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
		return FUNCTION;
	}
	return DW_ROLE_PASS;
}

/* What was read, so that nothing is left out by the compiler and libdw can be held against it. */
struct sum {
	uint64_t delivered, names, refs, numbers, bytes;
};

struct job {
	const struct dwarf *dw;
	struct dw_walker walkers[64];
	struct sum sums[64];
	bool read;
};

/*
 * Names by their place in .debug_str where they are there: an encoder compares places before bytes.
 */
static inline void read_name(struct dw_walker *w, struct sum *s)
{
	uint64_t strp = dw_seen_strp(w, NAME);
	if (strp == DW_NO_STRP && !dw_seen(w, NAME))
		return;
	s->names++;
	s->numbers += strp != DW_NO_STRP ? strp : (uint8_t)*dw_seen_str(w, NAME);
}

static void read_function(struct dw_walker *w, struct sum *s)
{
	struct dw_range range;
	read_name(w, s);
	s->refs += dw_seen_ref(w, TYPE) + dw_seen_ref(w, ORIGIN);
	s->numbers += dw_seen_uint(w, LINE, 0);
	if (dw_seen_range(w, LOW_PC, HIGH_PC, &range))
		s->bytes += range.hi.v - range.lo.v;
}

static void read_die(struct dw_walker *w, int role, struct sum *s)
{
	switch (role) {
	case TYPED:
		read_name(w, s);
		s->refs += dw_seen_ref(w, TYPE);
		s->refs += dw_seen_ref(w, ORIGIN);
		break;
	case SIZED:
		read_name(w, s);
		s->numbers += dw_seen_uint(w, SIZE, 0) + dw_seen_uint(w, LINE, 0);
		break;
	case MEMBER:
		read_name(w, s);
		s->refs += dw_seen_ref(w, TYPE);
		s->numbers += dw_seen_uint(w, MEMBER_LOCATION, 0);
		break;
	case ENUMERATOR:
		read_name(w, s);
		s->numbers += dw_seen_uint(w, CONST_VALUE, 0);
		break;
	case SUBRANGE:
		s->numbers += dw_seen_uint(w, UPPER_BOUND, 0);
		break;
	case FUNCTION:
		read_function(w, s);
		break;
	}
}

static int walk_unit(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct job *job = ctx;
	struct dw_walker *w = &job->walkers[worker];
	struct sum *s = &job->sums[worker];
	int rc = dw_walker_enter(w, dwarf_unit(job->dw, item), err);
	while (rc >= 0 && (rc = dw_walker_next(w)) > 0) {
		s->delivered++;
		if (job->read)
			read_die(w, rc, s);
	}
	return rc;
}

static int walk(const struct dwarf *dw, uint8_t (*role)(uint16_t tag), bool read,
		unsigned int threads, struct sum *ret, uint64_t *n_dies, struct cairn_err *err)
{
	static struct job job;
	unsigned int width = pool_width(threads);
	struct dw_query wish = {.attrs = attrs, .n_attrs = read ? N_SLOTS : 0, .role = role};
	job = (struct job){.dw = dw, .read = read};
	for (unsigned int i = 0; i < width; i++)
		dw_walker_init(&job.walkers[i], &wish);
	int rc = pool_run(dwarf_n_units(dw), threads, walk_unit, &job, err);
	*ret = (struct sum){0};
	*n_dies = 0;
	for (unsigned int i = 0; i < width; i++) {
		*n_dies += job.walkers[i].n_dies;
		ret->delivered += job.sums[i].delivered;
		ret->names += job.sums[i].names;
		ret->refs += job.sums[i].refs;
		ret->numbers += job.sums[i].numbers;
		ret->bytes += job.sums[i].bytes;
		dw_walker_fini(&job.walkers[i]);
	}
	return rc;
}

/* ---- libdw ---- */

struct theirs {
	struct sum sum;
	uint64_t n_dies;
	bool read;
};

static uint64_t their_uint(Dwarf_Die *die, unsigned int at)
{
	Dwarf_Attribute attr;
	Dwarf_Word u;
	if (!dwarf_attr(die, at, &attr))
		return 0;
	switch (dwarf_whatform(&attr)) {
	case DW_FORM_exprloc:
	case DW_FORM_block1:
		return 0;
	case DW_FORM_sdata:
	case DW_FORM_implicit_const: {
		Dwarf_Sword s;
		return dwarf_formsdata(&attr, &s) == 0 ? (uint64_t)s : 0;
	}
	}
	return dwarf_formudata(&attr, &u) == 0 ? u : 0;
}

static uint32_t read_4(const unsigned char *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t their_ref(Dwarf_Die *die, unsigned int at)
{
	Dwarf_Attribute attr;
	Dwarf_Die to;
	return dwarf_attr(die, at, &attr) && dwarf_formref_die(&attr, &to) ? dwarf_dieoffset(&to)
									   : 0;
}

static void their_name(Dwarf_Die *die, struct sum *s)
{
	Dwarf_Attribute attr;
	if (!dwarf_attr(die, DW_AT_name, &attr))
		return;
	s->names++;
	s->numbers += dwarf_whatform(&attr) == DW_FORM_strp ? read_4(attr.valp) : *attr.valp;
}

static void their_die(struct theirs *t, Dwarf_Die *die)
{
	struct sum *s = &t->sum;
	Dwarf_Addr lo, hi;
	t->n_dies++;
	unsigned int want = t->read ? wanted[role_types((uint16_t)dwarf_tag(die))] : 0;
	if (!want)
		return;
	s->delivered++;
	if (want & BIT(NAME))
		their_name(die, s);
	if (want & BIT(TYPE))
		s->refs += their_ref(die, DW_AT_type);
	if (want & BIT(ORIGIN))
		s->refs += their_ref(die, DW_AT_abstract_origin);
	for (unsigned int slot = SIZE; slot <= CONST_VALUE; slot++)
		if (want & BIT(slot))
			s->numbers += their_uint(die, attrs[slot]);
	if (want & BIT(LOW_PC) && dwarf_hasattr(die, DW_AT_low_pc) && dwarf_lowpc(die, &lo) == 0 &&
	    lo && dwarf_highpc(die, &hi) == 0 && lo < hi)
		s->bytes += hi - lo;
}

static void their_unit(struct theirs *t, Dwarf_Die *root)
{
	static Dwarf_Die at[DEPTH_MAX];
	int depth = 0;
	at[0] = *root;
	while (depth >= 0) {
		their_die(t, &at[depth]);
		if (depth + 1 < DEPTH_MAX && dwarf_child(&at[depth], &at[depth + 1]) == 0) {
			depth++;
			continue;
		}
		while (depth > 0 && dwarf_siblingof(&at[depth], &at[depth]) != 0)
			depth--;
		if (!depth)
			return;
	}
}

static int their_walk(const char *path, struct theirs *t)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Dwarf *dw = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
	if (!dw)
		return -1;
	Dwarf_Off off = 0, next;
	size_t header;
	while (dwarf_nextcu(dw, off, &next, &header, NULL, NULL, NULL) == 0) {
		Dwarf_Die root;
		if (dwarf_offdie(dw, off + header, &root))
			their_unit(t, &root);
		off = next;
	}
	dwarf_end(dw);
	close(fd);
	return 0;
}

/* ---- showing ---- */

static void show(const char *what, double seconds, uint64_t n_dies, const struct sum *s)
{
	printf("%-16s %.3f s, %" PRIu64 " DIEs, %.1f ns each; %" PRIu64 " delivered\n", what,
	       seconds, n_dies, seconds * 1e9 / (double)n_dies, s->delivered);
}

static int ours(const struct dwarf *dw, const char *what, uint8_t (*role)(uint16_t tag), bool read,
		unsigned int threads, struct sum *ret)
{
	struct cairn_err err = {0};
	double best = 0;
	uint64_t n_dies = 0;
	for (int i = 0; i < RUNS; i++) {
		double start = now();
		if (walk(dw, role, read, threads, ret, &n_dies, &err) < 0) {
			fprintf(stderr, "%s\n", err.msg);
			return 1;
		}
		double took = now() - start;
		if (!i || took < best)
			best = took;
	}
	show(what, best, n_dies, ret);
	return 0;
}

static int libdw(const char *path, const char *what, bool read, int runs, struct sum *ret)
{
	double best = 0;
	struct theirs t;
	for (int i = 0; i < runs; i++) {
		double start = now();
		t = (struct theirs){.read = read};
		if (their_walk(path, &t) < 0) {
			fprintf(stderr, "libdw: %s\n", dwarf_errmsg(-1));
			return 1;
		}
		double took = now() - start;
		if (!i || took < best)
			best = took;
	}
	show(what, best, t.n_dies, &t.sum);
	*ret = t.sum;
	return 0;
}

int main(int argc, char **argv)
{
	struct cairn_binary *bin;
	struct dwarf *dw;
	struct cairn_err err = {0};
	if (argc < 2) {
		fprintf(stderr, "usage: bench_walk FILE [THREADS [alone]]\n");
		return 2;
	}
	unsigned int threads = argc > 2 ? (unsigned int)atoi(argv[2]) : 1;
	if (cairn_binary_open(argv[1], NULL, &bin, &err) < 0 ||
	    dwarf_open(bin, threads, &dw, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	const char *path = cairn_binary_debug_path(bin);
	struct sum types, theirs, unused;
	bool alone = argc > 3;
	int bad = ours(dw, "step", role_none, false, threads, &unused) |
		  ours(dw, "deliver", role_all, false, threads, &unused) |
		  ours(dw, "types", role_types, true, threads, &types);
	if (!alone)
		bad |= libdw(path, "libdw", false, RUNS, &unused) |
		       libdw(path, "libdw, types", true, 1, &theirs);
	if (!bad && !alone &&
	    (types.delivered != theirs.delivered || types.names != theirs.names ||
	     types.refs != theirs.refs || types.numbers != theirs.numbers ||
	     types.bytes != theirs.bytes)) {
		fprintf(stderr,
			"not the same: %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIu64 " %" PRIu64
			", libdw %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIu64 " %" PRIu64 "\n",
			types.delivered, types.names, types.refs, types.numbers, types.bytes,
			theirs.delivered, theirs.names, theirs.refs, theirs.numbers, theirs.bytes);
		bad = 1;
	}
	dwarf_close(dw);
	cairn_binary_close(bin);
	return bad;
}
