/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locations as text
 *
 *	LOC_PARAM              plain                     pretty, x86-64
 *	REG 2                  reg2                      rcx
 *	REG 2, OFFSET 16       reg2 + 0x10               rcx + 16
 *	DEREF REG 2, OFFSET 16 *(reg2 + 0x10)            *(u64 *)(rcx + 16)
 *	DEREF FBREG -32        *(fbreg - 0x20)           *(u64 *)(frame base - 32)
 *	REG 5, 4               {reg5, reg4}              {rdi, rsi}
 *	CONST -1               -0x1                      -1
 *	CONST ADDR             0x1230 (addr)             base + 0x1230
 *
 * The plain form is the one that upstream's tests expect of bpftool; two registers and parameters
 * without a location are not in those tests.
 */
#include "btf/dump.h"

#include <elf.h>
#include <inttypes.h>
#include <stdarg.h>

#include "insn/insn.h"

struct text {
	char *buf;
	size_t size, n;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(t->buf + t->n, t->size - t->n, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->n = t->n + (size_t)n < t->size ? t->n + (size_t)n : t->size - 1;
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static void plain_reg(struct text *t, uint32_t reg)
{
	if (reg == CAIRN_BTF_LOC_FBREG)
		put(t, "fbreg");
	else
		put(t, "reg%" PRIu32, reg);
}

static void arm64_reg(struct text *t, uint32_t reg)
{
	if (reg == 31)
		put(t, "sp");
	else if (reg < 31)
		put(t, "x%" PRIu32, reg);
	else
		plain_reg(t, reg);
}

static void pretty_reg(struct text *t, uint32_t reg, int machine)
{
	const char *name = machine == EM_X86_64 ? insn_reg_name(reg) : NULL;

	if (reg == CAIRN_BTF_LOC_FBREG)
		put(t, "frame base");
	else if (machine == EM_AARCH64)
		arm64_reg(t, reg);
	else if (name)
		put(t, "%s", name);
	else
		plain_reg(t, reg);
}

static bool has_location(const struct cairn_btf_loc_param *p)
{
	return (p->flags & CAIRN_BTF_LOC_CONST) || ((p->flags & CAIRN_BTF_LOC_REG) && p->n_regs);
}

static void plain_constant(struct text *t, const struct cairn_btf_loc_param *p)
{
	if ((p->flags & CAIRN_BTF_LOC_SIGNED) && p->value < 0)
		put(t, "-0x%" PRIx64, magnitude(p->value));
	else
		put(t, "0x%" PRIx64, (uint64_t)p->value);
	if (p->flags & CAIRN_BTF_LOC_ADDR)
		put(t, " (addr)");
}

static void plain_register(struct text *t, const struct cairn_btf_loc_param *p)
{
	if (p->n_regs == 2) {
		put(t, "{");
		plain_reg(t, p->reg[0]);
		put(t, ", ");
		plain_reg(t, p->reg[1]);
		put(t, "}");
		return;
	}
	if (p->flags & CAIRN_BTF_LOC_DEREF)
		put(t, "*(");
	plain_reg(t, p->reg[0]);
	if (p->flags & CAIRN_BTF_LOC_OFFSET)
		put(t, " %c 0x%" PRIx64, p->offset < 0 ? '-' : '+', magnitude(p->offset));
	if (p->flags & CAIRN_BTF_LOC_DEREF)
		put(t, ")");
}

void dump_loc(const struct cairn_btf_loc_param *p, char *buf, size_t size)
{
	struct text t = {.buf = buf, .size = size};

	if (!has_location(p))
		put(&t, "(unavailable)");
	else if (p->flags & CAIRN_BTF_LOC_CONST)
		plain_constant(&t, p);
	else
		plain_register(&t, p);
}

static void pretty_constant(struct text *t, const struct cairn_btf_loc_param *p)
{
	if (p->flags & CAIRN_BTF_LOC_ADDR)
		put(t, "base + 0x%" PRIx64, (uint64_t)p->value);
	else if (p->flags & CAIRN_BTF_LOC_SIGNED)
		put(t, "%" PRId64, p->value);
	else
		put(t, "%" PRIu64, (uint64_t)p->value);
}

/* "*(u64 *)(", with bytes instead of a type that C does not have. */
static void pretty_load(struct text *t, uint32_t bytes)
{
	if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)
		put(t, "*(u%" PRIu32 " *)(", bytes * 8);
	else
		put(t, "*(u8 (*)[%" PRIu32 "])(", bytes);
}

static void pretty_register(struct text *t, const struct cairn_btf_loc_param *p, int machine)
{
	bool braces = p->n_regs == 2, load = p->flags & CAIRN_BTF_LOC_DEREF;

	if (braces)
		put(t, "{");
	else if (load)
		pretty_load(t, p->size);
	pretty_reg(t, p->reg[0], machine);
	if (braces) {
		put(t, ", ");
		pretty_reg(t, p->reg[1], machine);
	} else if (p->flags & CAIRN_BTF_LOC_OFFSET) {
		put(t, " %c %" PRIu64, p->offset < 0 ? '-' : '+', magnitude(p->offset));
	}
	if (braces || load)
		put(t, braces ? "}" : ")");
}

void cairn_btf_loc_text(const struct cairn_btf_loc_param *p, int machine, char *buf, size_t size)
{
	struct text t = {.buf = buf, .size = size};

	if (!has_location(p))
		put(&t, "(unavailable)");
	else if (p->flags & CAIRN_BTF_LOC_CONST)
		pretty_constant(&t, p);
	else
		pretty_register(&t, p, machine ? machine : EM_X86_64);
}
