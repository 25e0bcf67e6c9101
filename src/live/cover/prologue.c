/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code before the program
 *
 * Of struct pt_regs only the words from the first to the last that the program reads have room on
 * the stack: at most 64 bytes with the arguments' registers, and often 16. A function of 64 bytes or
 * more has a stack of its own on each processor since Linux 6.13, and loses hits that interrupt one
 * another.
 *
 *	fp - 8                  the probe's context, if a helper wants it
 *	below it                the words
 *	below them              room for memory that is read on the way to an argument
 */
#include "cover/cover.h"

#define R0 0
#define R1 1
#define R2 2
#define R6 6
#define FP 10

/* Words that are the same at an inlined copy: where the probe is, and in which mode. */
static bool is_of_probe(const struct cover_site *site, unsigned int word)
{
	if (site->params && site->params->is_array)
		return false;
	return word == WORD_IP || word == WORD_CS || word == WORD_FLAGS || word == WORD_SS;
}

static bool is_read(const struct cover_use *use, unsigned int word)
{
	return use->words >> word & 1;
}

/* ---- arguments ---- */

static const char *arg_obstacle(const struct cover_site *site, uint32_t arg)
{
	const struct trace_site *s = site->trace->sites.p[site->site];
	struct trace_located_arg located;

	if (arg >= site->trace->probes.p[s->pub.probe]->pub.n_values)
		return "the function has too many arguments";
	trace_located_arg(site->trace, site->site, arg, &located);
	if (!located.is_available)
		return located.is_large ? "has more than 8 bytes" : s->slots[arg].unavailable;
	return fetch_is_known(&located) ? NULL : "is computed in a way that is not supported here";
}

static const char *word_obstacle(const struct cover_site *site, unsigned int word)
{
	int arg = site->params->of_word[word];

	if (is_of_probe(site, word))
		return NULL;
	if (site->params->structs[word] && !site->params->cast)
		return "this kernel has no bpf_rdonly_cast() (Linux 6.2)";
	if (arg == PARAM_UNKNOWN)
		return "a struct is passed by value, and so it is not known which argument it is";
	return arg == NO_PARAM ? "it is no argument of the function" : arg_obstacle(site, arg);
}

const char *prologue_obstacle(const struct cover_use *use, const struct cover_site *site,
			      unsigned int *ret_word)
{
	for (unsigned int w = 0; w < WORDS; w++) {
		const char *why = is_read(use, w) ? word_obstacle(site, w) : NULL;
		*ret_word = w;
		if (why)
			return why;
	}
	return NULL;
}

/* ---- the frame ---- */

struct frame {
	int16_t base;  /* of the struct pt_regs, from the end of the frame */
	int16_t spare; /* below the lowest word that is read */
};

static struct frame frame_of(const struct cover_use *use)
{
	int16_t top = use->n_context_calls ? -8 : 0;
	unsigned int first = 0, end = WORDS;

	while (end && !is_read(use, end - 1))
		end--;
	while (first < end && !is_read(use, first))
		first++;
	return (struct frame){.base = (int16_t)(top - 8 * (int)end),
			      .spare = (int16_t)(top - 8 * (int)(end - first) - 8)};
}

static void copy_word(struct cover_code *c, unsigned int word, int16_t to)
{
	code_add(c, BPF_LDX | BPF_MEM | BPF_DW, R0, R6, (int16_t)(8 * word), 0);
	code_add(c, BPF_STX | BPF_MEM | BPF_DW, FP, R0, to, 0);
}

/* The number becomes a pointer that the verifier knows. */
static void cast(struct cover_code *c, const struct cover_params *params, unsigned int word,
		 int16_t at)
{
	code_add(c, BPF_LDX | BPF_MEM | BPF_DW, R1, FP, at, 0);
	code_add(c, BPF_ALU64 | BPF_MOV | BPF_K, R2, 0, 0, (int32_t)params->structs[word]);
	code_add(c, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, (int32_t)params->cast);
	code_add(c, BPF_STX | BPF_MEM | BPF_DW, FP, R0, at, 0);
}

static void put_word(struct cover_code *c, const struct cover_site *site, unsigned int word,
		     const struct frame *frame)
{
	const struct cover_slot slot = {.at = (int16_t)(frame->base + 8 * (int)word),
					.spare = frame->spare,
					.of_kernel = site->of_kernel};
	struct trace_located_arg arg;

	if (is_of_probe(site, word))
		return copy_word(c, word, slot.at);
	trace_located_arg(site->trace, site->site, (uint32_t)site->params->of_word[word], &arg);
	fetch_arg(c, &arg, &slot);
	if (site->params->structs[word])
		cast(c, site->params, word, slot.at);
}

/* ---- calls that are lost ---- */

static void count_lost(struct cover_code *c, int lost_fd)
{
	for (size_t i = 0; i < c->faults.n; i++)
		c->insns.p[c->faults.p[i]].off = (int16_t)(c->insns.n - c->faults.p[i] - 1);
	code_add_wide(c, R1, BPF_PSEUDO_MAP_VALUE, (uint32_t)lost_fd);
	code_add(c, BPF_ALU64 | BPF_MOV | BPF_K, R2, 0, 0, 1);
	code_add(c, BPF_STX | BPF_ATOMIC | BPF_DW, R1, R2, 0, BPF_ADD);
	code_add(c, BPF_ALU64 | BPF_MOV | BPF_K, R0, 0, 0, 0);
	code_add(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

void prologue_make(struct cover_code *c, const struct cover_use *use, const struct cover_site *site,
		   int lost_fd, uint32_t *ret_call, int16_t *ret_context_at)
{
	const struct frame frame = frame_of(use);

	code_add(c, BPF_ALU64 | BPF_MOV | BPF_X, R6, R1, 0, 0);
	if (use->n_context_calls)
		code_add(c, BPF_STX | BPF_MEM | BPF_DW, FP, R6, -8, 0);
	for (unsigned int w = 0; w < WORDS; w++)
		if (is_read(use, w))
			put_word(c, site, w, &frame);
	code_add(c, BPF_ALU64 | BPF_MOV | BPF_X, R1, FP, 0, 0);
	code_add(c, BPF_ALU64 | BPF_ADD | BPF_K, R1, 0, 0, frame.base);
	*ret_call = (uint32_t)c->insns.n;
	code_add(c, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 0);
	code_add(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	if (c->faults.n && !c->failed)
		count_lost(c, lost_fd);
	*ret_context_at = (int16_t)(-8 - frame.base);
}
