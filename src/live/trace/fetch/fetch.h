/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fetch programs: assembling, running and printing them
 *
 * abi.h has the operations. A probe fixes where each of its values lies in the record; a site then
 * needs a program that puts them there from where the compiler keeps them at that site:
 *
 *	struct fetch_program p = {0};
 *	const char *why = compile_value(&c, &p, value);	// why it is unavailable, or NULL
 *	fetch_end(&p);
 *
 * Programs hold addresses only relative to the probed instruction, so that sites whose arguments
 * are in the same registers share one.
 */
#ifndef TRACE_FETCH_H
#define TRACE_FETCH_H

#include <stdio.h>

#include "decode/recipe.h"
#include "trace/expr/expr.h"

/* Where the kernel is: addresses in it are constants when a program is made. */
struct fetch_slide {
	bool is_of_kernel;
	bool is_of_module; /* each section is moved by a distance of its own */
	uint64_t by;
	const struct cairn_kernel *kernel; /* what the file is of */
};

struct fetch_program {
	struct fetch_slide slide; /* of programs that processes map: zero */
	uint32_t n;
	bool full;        /* more than FETCH_OPS_MAX were needed */
	uint32_t barrier; /* the operations before must stay: a jump leads here, or it is text */
	struct fetch_op ops[FETCH_OPS_MAX];
};

/* The position of a value in the record of its probe. */
struct value_layout {
	uint16_t out;                /* offset in the record */
	uint16_t n_bytes;            /* fetched; of a string: the most, a power of two */
	uint16_t n_shown;            /* of a string: the most, without its NUL */
	uint8_t bit_shift, bit_size; /* bit-field: in the fetched bytes; bit_size 0: none */
	bool cut;                    /* the type has more bytes than are fetched */
	uint8_t unit;                /* of a string of wide characters: 2 or 4; else 0 */
	/*
	 * The targets of recipes in the value's type. The 8 bytes at state tell whether the value
	 * was read, and then each target: a byte is 0 until it was.
	 */
	const struct target_layout *targets;
	uint8_t n_targets;
	uint16_t state;
};

/* For all values of a probe, as each takes a dozen operations, and for one. */
enum { TARGETS_MAX = 5 };

struct target_layout {
	struct recipe_at is;
	uint16_t out;
	uint16_t n_shown; /* bytes, at most 1 << log */
	uint8_t log;
};

/*
 * A string's slot in the record: 8 bytes of pointer, 2 bytes of length and TRACE_STRING_CUT, the
 * bytes. The pointer tells NULL from memory that cannot be read.
 */
#define STRING_POINTER_BYTES 8
#define STRING_LENGTH_BYTES  2
/* For buf(): 8 bytes of pointer, 8 of the length that was asked for, the bytes. */
#define BYTES_HEAD           16
/* The pointer of both, while it is not known; no address of a program. */
#define VALUE_NO_ADDRESS     INT64_C(0x4e4f5f4144445200)

/*
 * Limits of strings and of other values that are fetched; trace.h of the public headers has them.
 */
#define FETCHED_MAX      2048
#define STRING_BYTES_MIN 16

/* A new operation, zeroed but for its code; never NULL: when the program is full, a spare one. */
struct fetch_op *fetch_emit(struct fetch_program *p, enum fetch_code code);

/* Operations emitted from here on are not folded into earlier ones. */
static inline void fetch_barrier(struct fetch_program *p)
{
	p->barrier = p->n;
}

/* Begins a jump forwards; returns its number, for fetch_land(). */
static inline uint32_t fetch_begin_jump(struct fetch_program *p, enum fetch_code code)
{
	uint32_t at = p->n;

	fetch_emit(p, code);
	fetch_barrier(p);
	return at;
}

/* The jump leads to the end of the program as it is now. */
static inline void fetch_land(struct fetch_program *p, uint32_t jump)
{
	if (!p->full)
		p->ops[jump].jump = (uint8_t)(p->n - jump - 1);
	fetch_barrier(p);
}

/* acc = acc OP imm; folds an addition into one just before. */
void fetch_emit_imm(struct fetch_program *p, enum fetch_code code, int64_t imm);

/* record[out, out + n) = the low n bytes of acc, which is destroyed unless n is 1, 2, 4 or 8. */
void fetch_emit_store(struct fetch_program *p, uint32_t out, uint32_t n);

/* record[out, out + n) = memory at acc. */
void fetch_emit_copy(struct fetch_program *p, uint32_t out, uint32_t n);

/*
 * All operations from @from on are for @value: when one cannot read memory, the rest of them is
 * left out. Jumps stay as they are.
 */
void fetch_close_value(struct fetch_program *p, uint32_t from, uint32_t value);

/*
 * The operations [@from, @to) of a value: when one of them cannot read memory, the others are left
 * out.
 */
void fetch_close_part(struct fetch_program *p, uint32_t from, uint32_t to);

/*
 * The steps of a location; false with *@why when a probe cannot do one. @at is the probed address.
 */
bool fetch_emit_steps(struct fetch_program *p, const struct cairn_piece *piece,
		      struct cairn_vaddr at, enum cairn_unavailable *why);

/* One operation per line; returns 0 or a negative errno from @out. */
int fetch_print(const struct fetch_op *ops, uint32_t n, FILE *out);

/*
 * An interpreter: the BPF program is tested against it, and the planner folds constants with it.
 */
struct fetch_machine {
	uint64_t acc;
	uint64_t file[FETCH_FILE];
	/*
	 * Reads @n bytes of the traced program's memory; returns 0 or not. NULL: nothing can be
	 * read.
	 */
	int (*read)(void *ctx, uint64_t from, void *to, size_t n);
	void *ctx;
	uint8_t *record;
	uint32_t n_record;
	uint32_t faults;
	/* The kernel's knowledge of the thread. */
	uint64_t known[FETCH_N_KNOWN];
	char comm[16];
};

enum fetch_result {
	FETCH_DONE,
	FETCH_FILTERED,
	FETCH_UNDECIDED,
	FETCH_BROKEN, /* no such program can come from the compiler */
};

enum fetch_result fetch_run(struct fetch_machine *m, const struct fetch_op *ops, uint32_t n,
			    bool has_condition);

#endif
