/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target of a call
 *
 * Code made at run time may leave rbp as it was. Then rbp leads past a real caller, to the frame of
 * another one:
 *
 *	rb_yield:	call rb_vm_exec@plt	<- rbp leads to the return address here
 *	rb_vm_exec:	call *%rax		the frame that would be left out
 *	code made at run time			rbp is still rb_yield's
 *
 * The bytes before the return address contradict this: their call leads to rb_vm_exec, which is not
 * on the stack. So the target of a direct call is followed, and that of one through a slot of the
 * GOT. A stub of the PLT leads to the target in its slot. A tail call leaves no frame, so the
 * functions that a function jumps to are followed, too. The callee must be in one of them. Each
 * doubt is decided for the callee:
 *
 *	code in no file, or without a sized symbol or an FDE  it may lead to the callee
 *	bytes that do not decode                              it may
 *	indirect jump without a row, or with CFA rsp + 8      it may: this can be a tail call
 *	other indirect jump, or one through a table of
 *	distances                                             a switch: it stays in the function
 *	return with a CFA other than rsp + 8                  it may: code pushed the return address
 *	more than FUNCTIONS_MAX functions, or a very long one  it may
 */
#include "unwind/called.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "code/runtime.h"
#include "elf/elf.h"
#include "elf/functions.h"
#include "insn/call.h"
#include "insn/insn.h"

enum {
	RSP = 7,
	ENTRY_CFA = 8,
	/* A chain of tail calls is short; through a long one nearly everything can be reached. */
	FUNCTIONS_MAX = 32,
	/* Interpreters' loops have some 100,000 bytes. */
	BYTES_MAX = 1 << 20,
	/* Before a switch's jump, in which its address is computed. */
	LINE_BYTES_MAX = 256,
	STUB_BYTES = 16,
	JUMP_SLOT_BYTES = 6, /* ff 25, or ff 15 of a call, and a distance */
};

/* Addresses [lo, hi) of a function in the process. */
struct body {
	uint64_t lo, hi;
};

struct search {
	const struct called *c;
	uint64_t callee;
	bool may_lead; /* the answer, once it is true */
	struct body bodies[FUNCTIONS_MAX];
	unsigned int n;
};

static bool is_in(const struct body *b, uint64_t at)
{
	return at >= b->lo && at < b->hi;
}

/* True if the 8 bytes at @slot are in the table that only the dynamic loader fills. */
static bool is_got(const struct called *c, uint64_t slot)
{
	const struct code_image *image;
	struct cairn_vaddr vaddr;
	const char *name;
	uint64_t off;
	return code_space_peek(c->space, (struct cairn_addr){slot}, &image, &vaddr, NULL) == 0 &&
	       image && image->bin && cairn_binary_section_of(image->bin, vaddr, &name, &off) &&
	       strncmp(name, ".got", 4) == 0;
}

/*
 * The content of the slot of "call *slot(%rip)" or "jmp *slot(%rip)", which ends at @end with
 * @distance.
 */
static bool got_target(const struct called *c, uint64_t end, const uint8_t *distance, uint64_t *ret)
{
	int32_t value;
	memcpy(&value, distance, sizeof(value));
	uint64_t slot = end + (uint64_t)(int64_t)value;
	return is_got(c, slot) && code_memory_all(c->code, slot, ret, sizeof(*ret));
}

/*
 * The target of the call before @ret_addr; false when there is none, or the bytes read as another
 * call, too.
 */
static bool target_before(const struct called *c, uint64_t ret_addr, uint64_t *ret)
{
	uint8_t bytes[INSN_CALL_LONGEST];
	const uint8_t *end = bytes + sizeof(bytes);
	int32_t distance;
	if (!code_memory_all(c->code, ret_addr - sizeof(bytes), bytes, sizeof(bytes)))
		return false;
	if (end[-JUMP_SLOT_BYTES] == 0xff && end[-JUMP_SLOT_BYTES + 1] == 0x15)
		return got_target(c, ret_addr, end - sizeof(distance), ret);
	if (end[-INSN_CALL_REL32] != 0xe8 || insn_ends_with_indirect_call(end))
		return false;
	memcpy(&distance, end - sizeof(distance), sizeof(distance));
	*ret = ret_addr + (uint64_t)(int64_t)distance;
	return true;
}

static const struct cairn_unwind_rule *rule_in(const struct code_image *image,
					       struct cairn_vaddr at)
{
	const struct cairn_unwind_rule *rule =
		unwind_table_is_open(&image->table) ? unwind_table_find(&image->table, at) : NULL;
	return rule && rule->cfa != CAIRN_UNWIND_UNDESCRIBED ? rule : NULL;
}

static bool is_stub(const struct code_image *image, struct cairn_vaddr at)
{
	const char *name;
	uint64_t off;
	return cairn_binary_section_of(image->bin, at, &name, &off) &&
	       strncmp(name, ".plt", 4) == 0;
}

/* The target of a stub of the PLT: endbr64 or not, a bnd prefix or not, jmp *slot(%rip). */
static bool leave_stub(const struct called *c, uint64_t at, uint64_t *ret)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t bytes[STUB_BYTES];
	if (!code_memory_all(c->code, at, bytes, sizeof(bytes)))
		return false;
	size_t i = memcmp(bytes, endbr64, sizeof(endbr64)) ? 0 : sizeof(endbr64);
	i += bytes[i] == 0xf2;
	if (bytes[i] != 0xff || bytes[i + 1] != 0x25)
		return false;
	return got_target(c, at + i + JUMP_SLOT_BYTES, bytes + i + 2, ret);
}

/*
 * The function at @at, or its part, by its symbol, else by its FDE, which strip(1) leaves. Code
 * without a row has none.
 * Returns 1; 0: it is not known; -ENOMEM.
 */
static int body_at(const struct called *c, const struct code_image *image, struct cairn_vaddr vaddr,
		   uint64_t at, struct body *ret, struct cairn_err *err)
{
	const struct functions *functions;
	struct cairn_vaddr lo, hi;
	int rc = binary_functions(image->bin, &functions, err);
	if (rc < 0)
		return rc;
	const struct elf_symbol *s = functions ? functions_at(functions, vaddr) : NULL;
	rc = 1;
	if (s && s->size) {
		lo = s->at;
		hi.v = s->at.v + s->size;
	} else {
		rc = rule_in(image, vaddr)
			     ? code_space_fde(c->space, (struct cairn_addr){at}, &lo, &hi, err)
			     : 0;
	}
	if (rc != 1 || hi.v - lo.v > BYTES_MAX)
		return rc < 0 ? rc : 0;
	ret->lo = at - (vaddr.v - lo.v);
	ret->hi = ret->lo + (hi.v - lo.v);
	return 1;
}

static bool add_body(struct search *s, const struct body *body)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->bodies[i].lo == body->lo)
			return true;
	if (s->n == FUNCTIONS_MAX || is_in(body, s->callee))
		return false;
	s->bodies[s->n++] = *body;
	return true;
}

/* Control goes to @at: another function to be looked at, or the answer. Returns 0, -ENOMEM. */
static int go_to(struct search *s, uint64_t at, struct cairn_err *err)
{
	const struct code_mapping *m = code_maps_find(code_space_maps(s->c->space), at);
	const struct code_image *image;
	struct cairn_vaddr vaddr;
	struct body body;
	s->may_lead = true;
	if (!m || !m->is_executable || code_is_anonymous(m))
		return 0;
	int rc = code_space_find(s->c->space, (struct cairn_addr){at}, &image, &vaddr, err);
	if (rc < 0 || !image || !image->bin)
		return rc;
	if (is_stub(image, vaddr)) {
		if (!leave_stub(s->c, at, &at))
			return 0;
		rc = code_space_find(s->c->space, (struct cairn_addr){at}, &image, &vaddr, err);
		if (rc < 0 || !image || !image->bin || is_stub(image, vaddr))
			return rc;
	}
	rc = body_at(s->c, image, vaddr, at, &body, err);
	s->may_lead = rc != 1 || !add_body(s, &body);
	return rc < 0 ? rc : 0;
}

/* The rule at @at; NULL when no file has one. */
static int rule_at(const struct search *s, uint64_t at, const struct cairn_unwind_rule **ret,
		   struct cairn_err *err)
{
	const struct code_image *image;
	struct cairn_vaddr vaddr;
	int rc = code_space_find(s->c->space, (struct cairn_addr){at}, &image, &vaddr, err);
	*ret = rc == 0 && image && image->bin ? rule_in(image, vaddr) : NULL;
	return rc;
}

/* An indirect jump or a return, at @at. */
static int leave_unseen(struct search *s, uint64_t at, enum insn_flow flow, struct cairn_err *err)
{
	const struct cairn_unwind_rule *rule;
	int rc = rule_at(s, at, &rule, err);
	bool is_as_at_entry = rule && rule->cfa == CAIRN_UNWIND_CFA_REG && rule->reg == RSP &&
			      rule->off == ENTRY_CFA;
	s->may_lead = flow == INSN_RETURN ? rule && !is_as_at_entry : !rule || is_as_at_entry;
	return rc;
}

/*
 * The targets of one instruction. @line: the instructions that run one after the other up to and
 * including this one.
 */
static int follow(struct search *s, const struct body *body, uint64_t at,
		  const struct insn_step *step, const uint8_t *line, size_t n_line,
		  struct cairn_err *err)
{
	switch (step->flow) {
	case INSN_JUMP:
	case INSN_BRANCH:
		return is_in(body, step->target) ? 0 : go_to(s, step->target, err);
	case INSN_JUMP_INDIRECT:
		return insn_is_table_jump(line, n_line) ? 0 : leave_unseen(s, at, step->flow, err);
	case INSN_RETURN:
		return leave_unseen(s, at, step->flow, err);
	default:
		return 0;
	}
}

/* All instructions of a function, which are in @code. */
static int look_through(struct search *s, const struct body *body, const uint8_t *code,
			struct cairn_err *err)
{
	size_t n = body->hi - body->lo, line = 0, i = 0;
	struct insn_step step = {.flow = INSN_NEXT};
	int rc = 0;
	while (i < n && rc == 0 && !s->may_lead) {
		s->may_lead = !insn_step(code + i, n - i, body->lo + i, &step);
		if (s->may_lead)
			return 0;
		if (i - line > LINE_BYTES_MAX)
			line = i;
		rc = follow(s, body, body->lo + i, &step, code + line, i + step.len - line, err);
		i += step.len;
		if (step.flow != INSN_NEXT)
			line = i;
	}
	/* The function goes on with the code after it. */
	if (rc == 0 && !s->may_lead && (step.flow == INSN_NEXT || step.flow == INSN_BRANCH))
		rc = go_to(s, body->hi, err);
	return rc;
}

static int look_at(struct search *s, const struct body *body, struct cairn_err *err)
{
	size_t n = body->hi - body->lo;
	uint8_t *code = malloc(n);
	if (!code)
		return err_nomem(err, "the instructions of a function");
	s->may_lead = !code_memory_all(s->c->code, body->lo, code, n);
	int rc = s->may_lead ? 0 : look_through(s, body, code, err);
	free(code);
	return rc;
}

/* Whether @target cannot lead to @callee: 1, 0, -ENOMEM. */
static int search(const struct called *c, uint64_t target, uint64_t callee, struct cairn_err *err)
{
	struct search s = {.c = c, .callee = callee};
	int rc = go_to(&s, target, err);
	for (unsigned int i = 0; rc == 0 && !s.may_lead && i < s.n; i++) {
		const struct body body = s.bodies[i];
		rc = look_at(&s, &body, err);
	}
	return rc < 0 ? rc : !s.may_lead;
}

int called_is_other(const struct called *c, uint64_t callee, uint64_t ret_addr,
		    uint64_t *ret_target, struct cairn_err *err)
{
	const struct code_maps *maps = code_space_maps(c->space);
	uint64_t target;
	if (c->machine != EM_X86_64 || !target_before(c, ret_addr, &target))
		return 0;
	const struct code_mapping *from = code_maps_find(maps, callee),
				  *to = code_maps_find(maps, target);
	if (!to || !to->is_executable || code_is_anonymous(to))
		return 0;
	/* For callees without a file, the result does not depend on the address. */
	uint64_t key = from && code_is_anonymous(from) ? 0 : callee;
	struct called_known *known = &c->known[(target ^ target >> 6 ^ key) % CALLED_KNOWN];
	if (known->target != target || known->callee != key) {
		int rc = search(c, target, callee, err);
		if (rc < 0)
			return rc;
		*known = (struct called_known){target, key, rc};
	}
	*ret_target = target;
	return known->is_other;
}
