/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reference interpreter of fetch programs
 *
 * Does in plain C the work of bpf/trace.bpf.c in the kernel, without the tricks for the verifier.
 * Tests run both on the same programs; the planner runs this one to fold constants.
 */
#include <string.h>

#include "trace/fetch/fetch.h"

static int read_memory(struct fetch_machine *m, uint64_t from, void *to, size_t n)
{
	return m->read ? m->read(m->ctx, from, to, n) : -1;
}

static uint64_t extend(uint64_t v, unsigned int size, bool with_sign)
{
	unsigned int shift = (64 - 8 * size) & 63;

	v <<= shift;
	return with_sign ? (uint64_t)((int64_t)v >> shift) : v >> shift;
}

static uint64_t divide(uint8_t code, uint64_t a, uint64_t b)
{
	switch (code) {
	case FETCH_UDIV:
		return a / b;
	case FETCH_UMOD:
		return a % b;
	case FETCH_DIV: /* INT64_MIN / -1 wraps here as in BPF */
		return b == UINT64_MAX ? -a : (uint64_t)((int64_t)a / (int64_t)b);
	default:
		return b == UINT64_MAX ? 0 : (uint64_t)((int64_t)a % (int64_t)b);
	}
}

static uint64_t compare(uint8_t code, uint64_t a, uint64_t b)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (code) {
	case FETCH_EQ:
		return a == b;
	case FETCH_NE:
		return a != b;
	case FETCH_LT:
		return sa < sb;
	case FETCH_LE:
		return sa <= sb;
	case FETCH_GT:
		return sa > sb;
	case FETCH_GE:
		return sa >= sb;
	case FETCH_ULT:
		return a < b;
	case FETCH_ULE:
		return a <= b;
	case FETCH_UGT:
		return a > b;
	default:
		return a >= b;
	}
}

static uint64_t arithmetic(uint8_t code, uint64_t a, uint64_t b)
{
	switch (code) {
	case FETCH_ADD:
		return a + b;
	case FETCH_SUB:
		return a - b;
	case FETCH_MUL:
		return a * b;
	case FETCH_AND:
		return a & b;
	case FETCH_OR:
		return a | b;
	case FETCH_XOR:
		return a ^ b;
	case FETCH_SHL:
		return b > 63 ? 0 : a << b;
	case FETCH_SHR:
		return b > 63 ? 0 : a >> b;
	default:
		return (uint64_t)((int64_t)a >> (b > 63 ? 63 : b));
	}
}

/*
 * Operations on the accumulator and the file; false when memory cannot be read or there is no
 * result.
 */
static bool step(struct fetch_machine *m, const struct fetch_op *op)
{
	uint8_t reg = op->reg % FETCH_FILE;
	uint64_t other = op->flags & FETCH_F_FILE ? m->file[reg] : op->imm;
	uint64_t a = op->flags & FETCH_F_SWAP ? other : m->acc;
	uint64_t b = op->flags & FETCH_F_SWAP ? m->acc : other;

	switch (op->code) {
	case FETCH_REG:
		m->acc = m->file[reg];
		return true;
	case FETCH_CONST:
		m->acc = op->imm;
		return true;
	case FETCH_LOAD: {
		uint64_t to = 0;
		bool ok = op->size <= 8 && !read_memory(m, m->acc, &to, op->size);
		m->acc = to;
		return ok;
	}
	case FETCH_SAVE:
		m->file[reg] = m->acc;
		return true;
	case FETCH_SEXT:
	case FETCH_ZEXT:
		m->acc = extend(m->acc, op->size, op->code == FETCH_SEXT);
		return true;
	case FETCH_NEG:
		m->acc = -m->acc;
		return true;
	case FETCH_NOT:
		m->acc = ~m->acc;
		return true;
	}
	if (op->code >= FETCH_DIV && op->code <= FETCH_UMOD) {
		m->acc = b ? divide(op->code, a, b) : 0;
		return b != 0;
	}
	m->acc = op->code >= FETCH_EQ ? compare(op->code, a, b) : arithmetic(op->code, a, b);
	return op->code >= FETCH_ADD && op->code < FETCH_N_CODES;
}

/* Bytes of the string at @from with its NUL, at most @max, always terminated; 0 when unreadable. */
static uint32_t read_string(struct fetch_machine *m, uint64_t from, char *to, uint32_t max)
{
	for (uint32_t i = 0; i < max - 1; i++) {
		if (read_memory(m, from + i, to + i, 1))
			return 0;
		if (!to[i])
			return i + 1;
	}
	to[max - 1] = 0;
	return max;
}

static bool store(struct fetch_machine *m, uint32_t out, const void *bytes, uint32_t n)
{
	if (out > m->n_record || n > m->n_record - out)
		return false;
	memcpy(m->record + out, bytes, n);
	return true;
}

static bool copy(struct fetch_machine *m, const struct fetch_op *op)
{
	uint32_t n = 1u << op->size;
	uint8_t bytes[2048];

	return op->size <= 11 && !read_memory(m, m->acc + op->imm, bytes, n) &&
	       store(m, op->out, bytes, n);
}

static bool bytes(struct fetch_machine *m, const struct fetch_op *op)
{
	uint64_t n = m->file[op->reg % FETCH_FILE], max = UINT64_C(1) << (op->size & 15);
	uint8_t text[2048];

	n = n < max ? n : max;
	return op->size <= 11 && !read_memory(m, m->acc, text, n) &&
	       store(m, op->out, text, (uint32_t)n);
}

static bool string(struct fetch_machine *m, const struct fetch_op *op)
{
	uint32_t max = 1u << op->size;
	char text[2048], last = 0;
	uint32_t n = op->size <= 11 ? read_string(m, m->acc, text, max) : 0;
	uint16_t len = (uint16_t)n;

	if (!n)
		return false;
	if (n == max && !read_memory(m, m->acc + max - 1, &last, 1) && last)
		len |= TRACE_STRING_CUT;
	return store(m, op->out, &len, 2) && store(m, op->out + 2u, text, n);
}

/* Whether the string is that of the two operations from @pc on; false: it cannot be read. */
static bool string_equals(struct fetch_machine *m, const struct fetch_op *op,
			  const struct fetch_op *text_op)
{
	char text[FETCH_STREQ_BYTES] = {0};

	if (op->flags & FETCH_F_COMM)
		memcpy(text, m->comm, sizeof(m->comm));
	else if (!read_string(m, m->acc, text, sizeof(text)))
		return false;
	m->acc = !memcmp(text, text_op, sizeof(text));
	return true;
}

/*
 * Operations of values and conditions alike; @pc is that of the next one, of @n. False when memory
 * cannot be read or there is no result.
 */
static bool flow(struct fetch_machine *m, const struct fetch_op *ops, uint32_t n, uint32_t *pc)
{
	const struct fetch_op *op = &ops[*pc - 1];

	switch (op->code) {
	case FETCH_JZ:
	case FETCH_JNZ:
		if (!m->acc == (op->code == FETCH_JZ))
			*pc += op->jump;
		return true;
	case FETCH_STREQ:
		*pc += 2;
		return *pc <= n && string_equals(m, op, &ops[*pc - 2]);
	case FETCH_KNOWN:
		m->acc = op->imm < FETCH_N_KNOWN ? m->known[op->imm] : 0;
		return true;
	default:
		return step(m, op);
	}
}

static bool fetch_step(struct fetch_machine *m, const struct fetch_op *ops, uint32_t n,
		       uint32_t *pc)
{
	const struct fetch_op *op = &ops[*pc - 1];

	switch (op->code) {
	case FETCH_STORE_REG:
		return store(m, op->out, &m->file[op->reg % FETCH_FILE], op->size);
	case FETCH_STORE:
		return store(m, op->out, &m->acc, op->size);
	case FETCH_COPY:
		return copy(m, op);
	case FETCH_STRING:
		return string(m, op);
	case FETCH_BYTES:
		return bytes(m, op);
	default:
		return flow(m, ops, n, pc);
	}
}

static enum fetch_result run_condition(struct fetch_machine *m, const struct fetch_op *ops,
				       uint32_t n, uint32_t *pc)
{
	while (*pc < n) {
		const struct fetch_op *op = &ops[(*pc)++];

		if (op->code == FETCH_FILTER)
			return m->acc ? FETCH_DONE : FETCH_FILTERED;
		if (!flow(m, ops, n, pc))
			return FETCH_UNDECIDED;
	}
	return FETCH_BROKEN;
}

enum fetch_result fetch_run(struct fetch_machine *m, const struct fetch_op *ops, uint32_t n,
			    bool has_condition)
{
	uint32_t pc = 0;
	enum fetch_result r = has_condition ? run_condition(m, ops, n, &pc) : FETCH_DONE;

	if (r != FETCH_DONE)
		return r;
	m->faults = 0;
	while (pc < n) {
		const struct fetch_op *op = &ops[pc++];
		uint32_t next = pc;

		if (op->code == FETCH_END)
			return FETCH_DONE;
		if (fetch_step(m, ops, n, &pc))
			continue;
		m->faults |= 1u << (op->value & 31);
		pc = next + op->jump;
	}
	return FETCH_BROKEN;
}
