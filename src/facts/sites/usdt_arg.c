/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arguments of a USDT probe
 *
 *	arguments := argument { blank argument }
 *	argument  := [ [ "-" ] size [ "f" ] "@" ] operand        "-": signed; "f": a float
 *	operand   := "%" register                                %eax
 *	           | "$" sum                                     $-22, $counter+4
 *	           | [ sum ] "(" [ %base ] [ "," %index [ "," scale ] ] ")"
 *	           | sum                                         in memory at that address
 *	sum       := term { ( "+" | "-" ) term }
 *	term      := number | symbol                             at most one symbol
 *
 * The operand is what the compiler substituted into inline assembly, in the assembler's syntax:
 * AT&T's, or Intel's with -masm=intel, which is not read here. So nothing about it can be stale,
 * unlike a debugger's description: the nop and the value were made for each other. Its registers
 * are named by the width that the compiler knew; a value that is wider than its register is not
 * believed.
 *
 * A note without sizes is of the format before 2010.
 */
#include "sites/usdt_arg.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "elf/elf.h"

/* Longest operand's program: an index, its scale, a slot, a symbol, a base, a displacement. */
enum { STEPS_MAX = 8 };

/* DWARF's numbers, which are those of the steps. */
static const struct {
	const char *names[4]; /* by width: 8, 4, 2, 1 bytes */
} general[16] = {
	{{"rax", "eax", "ax", "al"}},      {{"rdx", "edx", "dx", "dl"}},
	{{"rcx", "ecx", "cx", "cl"}},      {{"rbx", "ebx", "bx", "bl"}},
	{{"rsi", "esi", "si", "sil"}},     {{"rdi", "edi", "di", "dil"}},
	{{"rbp", "ebp", "bp", "bpl"}},     {{"rsp", "esp", "sp", "spl"}},
	{{"r8", "r8d", "r8w", "r8b"}},     {{"r9", "r9d", "r9w", "r9b"}},
	{{"r10", "r10d", "r10w", "r10b"}}, {{"r11", "r11d", "r11w", "r11b"}},
	{{"r12", "r12d", "r12w", "r12b"}}, {{"r13", "r13d", "r13w", "r13b"}},
	{{"r14", "r14d", "r14w", "r14b"}}, {{"r15", "r15d", "r15w", "r15b"}},
};

struct operand_reader {
	struct usdt_symbols *symbols;
	bool no_memory;
	const char *pos;
	struct cairn_loc_step steps[STEPS_MAX];
	uint32_t n_steps;
	enum cairn_piece_kind kind;
	uint8_t width; /* of a register: the bytes of it that are known; 0: no register */
	enum cairn_unavailable why;
};

struct sum {
	int64_t number;
	bool has_symbol;
	struct cairn_vaddr symbol;
};

static void give_up(struct operand_reader *r, enum cairn_unavailable why)
{
	if (r->why == CAIRN_AVAILABLE)
		r->why = why;
}

static struct cairn_loc_step *step(struct operand_reader *r, enum cairn_loc_op op)
{
	struct cairn_loc_step *s = &r->steps[r->n_steps < STEPS_MAX ? r->n_steps++ : 0];
	*s = (struct cairn_loc_step){.op = (uint8_t)op};
	return s;
}

static bool is_name(const char *text, size_t n, const char *name)
{
	return strlen(name) == n && !memcmp(text, name, n);
}

/* The second byte of a register, which has a name of its own. */
static bool read_high_byte(struct operand_reader *r, const char *text, size_t n)
{
	static const char *const names[] = {"ah", "dh", "ch", "bh"};
	for (uint8_t i = 0; i < 4; i++) {
		if (!is_name(text, n, names[i]))
			continue;
		step(r, CAIRN_LOC_REG)->reg = i;
		step(r, CAIRN_LOC_SHR)->imm = 8;
		r->width = 1;
		return true;
	}
	return false;
}

/* The number of a general register, and its width in bytes; false: another one. */
static bool general_register(const char *text, size_t n, uint8_t *ret, uint8_t *ret_width)
{
	for (uint8_t i = 0; i < 16; i++)
		for (uint8_t k = 0; k < 4; k++) {
			if (!is_name(text, n, general[i].names[k]))
				continue;
			*ret = i;
			*ret_width = (uint8_t)(8 >> k);
			return true;
		}
	return false;
}

static size_t name_length(const char *text)
{
	size_t n = 0;
	while (isalnum((unsigned char)text[n]) || (text[n] && strchr("_.$@", text[n])))
		n++;
	return n;
}

static bool is_vector_name(const char *text, size_t n)
{
	return n > 3 && strchr("xyz", text[0]) && !memcmp(text + 1, "mm", 2);
}

/* A value in a register: "%eax", after the percent sign. */
static void read_register(struct operand_reader *r)
{
	size_t n = name_length(r->pos);
	uint8_t reg, width;
	if (general_register(r->pos, n, &reg, &width)) {
		step(r, CAIRN_LOC_REG)->reg = reg;
		r->width = width;
	} else if (is_vector_name(r->pos, n)) {
		give_up(r, CAIRN_UNAVAIL_VECTOR_REGISTER);
	} else if (is_name(r->pos, n, "fs") && r->pos[n] == ':') {
		return give_up(r, CAIRN_UNAVAIL_THREAD_LOCAL);
	} else if (!read_high_byte(r, r->pos, n)) {
		give_up(r, CAIRN_UNAVAIL_UNSUPPORTED);
	}
	r->pos += n;
}

static int by_name(const void *a, const void *b)
{
	const struct elf_symbol *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

static int add_symbols(struct usdt_symbols *s, struct elf *e)
{
	const struct elf_symbol *symbols;
	size_t n;
	int rc = e ? elf_symbols(e, &symbols, &n, NULL) : -ENOENT;
	/* Without them, or with damaged ones, operands have no symbol. */
	for (size_t i = 0; !rc && i < n; i++)
		if (!VEC_ADD(&s->v, &symbols[i]))
			return -ENOMEM;
	return rc == -ENOMEM ? rc : 0;
}

static int make_symbols(struct usdt_symbols *s)
{
	struct elf *code = binary_main(s->bin), *debug = binary_debug(s->bin);
	int rc = s->is_made ? 0 : add_symbols(s, code);
	if (s->is_made || rc < 0)
		return rc;
	rc = debug == code ? 0 : add_symbols(s, debug);
	if (s->v.n)
		qsort(s->v.p, s->v.n, sizeof(*s->v.p), by_name);
	s->is_made = rc >= 0;
	return rc;
}

void usdt_symbols_fini(struct usdt_symbols *s)
{
	VEC_FREE(&s->v);
}

/* The order of a symbol's name and of the @n bytes at @name. */
static int compare_name(const struct elf_symbol *symbol, const char *name, size_t n)
{
	int order = strncmp(symbol->name, name, n);
	return order ? order : symbol->name[n] != 0;
}

/* Local symbols of several units may have one name: which is meant is then not known. */
static enum cairn_unavailable look_up(const struct usdt_symbols *s, const char *name, size_t n,
				      struct cairn_vaddr *ret)
{
	size_t from = SEARCH(0, s->v.n, mid, compare_name(s->v.p[mid], name, n) < 0);
	if (from == s->v.n || compare_name(s->v.p[from], name, n))
		return CAIRN_UNAVAIL_NO_SYMBOL;
	*ret = s->v.p[from]->at;
	for (size_t i = from; i < s->v.n && !compare_name(s->v.p[i], name, n); i++) {
		if (s->v.p[i]->type == STT_TLS)
			return CAIRN_UNAVAIL_THREAD_LOCAL;
		if (s->v.p[i]->at.v != ret->v)
			return CAIRN_UNAVAIL_AMBIGUOUS;
	}
	return CAIRN_AVAILABLE;
}

static void read_symbol(struct operand_reader *r, struct sum *to)
{
	const char *name = r->pos;
	size_t n = name_length(name);
	r->pos += n;
	/* "DWORD PTR [rbp-4]": Intel's syntax, and no symbol. */
	if (!n || to->has_symbol || (*r->pos && !strchr("+-(", *r->pos)))
		return give_up(r, CAIRN_UNAVAIL_UNSUPPORTED);
	if (make_symbols(r->symbols) < 0) {
		r->no_memory = true;
		return give_up(r, CAIRN_UNAVAIL_NO_SYMBOL);
	}
	to->has_symbol = true;
	give_up(r, look_up(r->symbols, name, n, &to->symbol));
}

static void read_number(struct operand_reader *r, bool negative, struct sum *to)
{
	char *end;
	errno = 0;
	uint64_t v = strtoull(r->pos, &end, 0);
	if (errno || isalnum((unsigned char)*end))
		give_up(r, CAIRN_UNAVAIL_UNSUPPORTED);
	r->pos = end;
	to->number = (int64_t)((uint64_t)to->number + (negative ? -v : v));
}

static void read_term(struct operand_reader *r, struct sum *to)
{
	bool negative = *r->pos == '-';
	if (*r->pos == '-' || *r->pos == '+')
		r->pos++;
	if (isdigit((unsigned char)*r->pos))
		read_number(r, negative, to);
	else if (negative)
		give_up(r, CAIRN_UNAVAIL_UNSUPPORTED);
	else
		read_symbol(r, to);
}

static struct sum read_sum(struct operand_reader *r)
{
	struct sum sum = {0};
	do
		read_term(r, &sum);
	while (r->why == CAIRN_AVAILABLE && (*r->pos == '+' || *r->pos == '-'));
	return sum;
}

struct address {
	bool has_base, has_index, is_rip;
	uint8_t base, index;
	unsigned int shift;
};

/* A register of an address, which has 8 bytes; false if there is none. */
static bool read_address_register(struct operand_reader *r, uint8_t *ret)
{
	uint8_t width = 0;
	if (*r->pos != '%')
		return false;
	size_t n = name_length(++r->pos);
	if (!general_register(r->pos, n, ret, &width) || width != 8)
		give_up(r, CAIRN_UNAVAIL_UNSUPPORTED);
	r->pos += n;
	return true;
}

static void read_index(struct operand_reader *r, struct address *a)
{
	if (*r->pos != ',')
		return;
	r->pos++;
	a->has_index = read_address_register(r, &a->index);
	if (*r->pos != ',')
		return;
	r->pos++;
	switch (*r->pos) {
	case '1':
	case '2':
	case '4':
	case '8':
		a->shift = (unsigned int)__builtin_ctz((unsigned int)(*r->pos++ - '0'));
		break;
	default:
		give_up(r, CAIRN_UNAVAIL_UNSUPPORTED);
	}
}

/* "(%rbp)", "(%rax,%rbx,8)", "(%rip)". */
static struct address read_address(struct operand_reader *r)
{
	struct address a = {0};
	if (*r->pos != '(')
		return a;
	r->pos++;
	if (!strncmp(r->pos, "%rip)", 5)) {
		a.is_rip = true;
		r->pos += 4;
	} else {
		a.has_base = read_address_register(r, &a.base);
		read_index(r, &a);
	}
	if (*r->pos++ != ')') {
		r->pos--;
		give_up(r, CAIRN_UNAVAIL_UNSUPPORTED);
	}
	return a;
}

/* The accumulator becomes the address. */
static void address_steps(struct operand_reader *r, const struct sum *sum, const struct address *a)
{
	bool begun = a->has_index;
	if (a->has_index)
		step(r, CAIRN_LOC_REG)->reg = a->index;
	if (a->has_index && a->shift)
		step(r, CAIRN_LOC_SHL)->imm = a->shift;
	if (a->has_base && begun)
		*step(r, CAIRN_LOC_ADD) = (struct cairn_loc_step){
			.op = CAIRN_LOC_ADD, .operand = CAIRN_LOC_OPERAND_REG, .reg = a->base};
	else if (a->has_base)
		step(r, CAIRN_LOC_REG)->reg = a->base;
	begun |= a->has_base;
	if (begun && sum->has_symbol)
		step(r, CAIRN_LOC_SAVE);
	if (sum->has_symbol)
		step(r, CAIRN_LOC_ADDR)->imm = (int64_t)(sum->symbol.v + (uint64_t)sum->number);
	if (begun && sum->has_symbol)
		step(r, CAIRN_LOC_ADD)->operand = CAIRN_LOC_SLOT;
	else if (begun && sum->number)
		step(r, CAIRN_LOC_ADD)->imm = sum->number;
	if (!begun && !sum->has_symbol)
		step(r, CAIRN_LOC_CONST)->imm = sum->number;
}

static void read_memory(struct operand_reader *r)
{
	struct sum sum = {0};
	r->kind = CAIRN_PIECE_MEMORY;
	if (*r->pos != '(')
		sum = read_sum(r);
	struct address a = read_address(r);
	/* A distance from the next instruction, whose address the assembler alone knew. */
	if (a.is_rip && !sum.has_symbol)
		give_up(r, CAIRN_UNAVAIL_UNSUPPORTED);
	address_steps(r, &sum, &a);
}

static void read_constant(struct operand_reader *r)
{
	struct sum sum = read_sum(r);
	r->kind = CAIRN_PIECE_VALUE;
	address_steps(r, &sum, &(struct address){0});
}

static void read_operand(struct operand_reader *r)
{
	r->kind = CAIRN_PIECE_VALUE;
	if (elf_machine(binary_main(r->symbols->bin)) != EM_X86_64)
		return give_up(r, CAIRN_UNAVAIL_UNSUPPORTED);
	if (*r->pos == '%') {
		r->pos++;
		read_register(r);
	} else if (*r->pos == '$') {
		r->pos++;
		read_constant(r);
	} else {
		read_memory(r);
	}
	if (*r->pos)
		give_up(r, CAIRN_UNAVAIL_UNSUPPORTED);
}

static int set_location(const struct operand_reader *r, struct arena *arena,
			struct cairn_usdt_arg *ret)
{
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));
	struct cairn_loc_step *steps = arena_array(arena, r->n_steps + 1u, sizeof(*steps));
	if (!piece || !steps)
		return -ENOMEM;
	memcpy(steps, r->steps, r->n_steps * sizeof(*steps));
	*piece = (struct cairn_piece){.kind = r->kind, .n_steps = r->n_steps, .steps = steps};
	ret->loc = (struct cairn_location){.n_pieces = 1, .pieces = piece};
	return 0;
}

/* The length of "-4f@" at the start of @text; 0: no size is there. */
static size_t size_length(const char *text)
{
	size_t n = text[0] == '-';
	if (!isdigit((unsigned char)text[n]))
		return 0;
	while (isdigit((unsigned char)text[n]))
		n++;
	n += text[n] == 'f';
	return text[n] == '@' ? n + 1 : 0;
}

static void read_size(const char *text, struct cairn_usdt_arg *ret)
{
	long size = labs(strtol(text, NULL, 10));
	ret->is_signed = text[0] == '-';
	ret->is_float = text[size_length(text) - 2] == 'f';
	if (size == 1 || size == 2 || size == 4 || size == 8)
		ret->size = (uint8_t)size;
}

static int parse_one(struct usdt_symbols *symbols, const char *text, struct arena *arena,
		     struct cairn_usdt_arg *ret)
{
	struct operand_reader r = {.symbols = symbols, .pos = text + size_length(text)};
	*ret = (struct cairn_usdt_arg){.text = text};
	if (size_length(text))
		read_size(text, ret);
	read_operand(&r);
	/* A value without a size is the register that it is in. */
	if (!size_length(text))
		ret->size = r.width;
	if (!ret->size || (r.width && ret->size > r.width))
		give_up(&r, CAIRN_UNAVAIL_UNSUPPORTED);
	if (r.no_memory)
		return -ENOMEM;
	ret->loc.why = r.why;
	return r.why == CAIRN_AVAILABLE ? set_location(&r, arena, ret) : 0;
}

/*
 * The length of the argument at the start of @text. An operand may have blanks in it (Intel's
 * syntax): it ends before the next size.
 */
static size_t argument_length(const char *text)
{
	bool has_size = size_length(text);
	size_t n = strcspn(text, " \t");
	while (has_size && text[n]) {
		size_t blanks = strspn(text + n, " \t");
		if (!text[n + blanks] || size_length(text + n + blanks))
			break;
		n += blanks + strcspn(text + n + blanks, " \t");
	}
	return n;
}

int usdt_args_parse(struct usdt_symbols *symbols, const char *text, struct arena *arena,
		    const struct cairn_usdt_arg **ret, struct cairn_err *err)
{
	struct cairn_usdt_arg *args = arena_array(arena, USDT_ARGS_MAX, sizeof(*args));
	int n = 0;
	text += strspn(text, " \t");
	while (args && *text && n < USDT_ARGS_MAX) {
		size_t len = argument_length(text);
		char *one = arena_strndup(arena, text, len);
		if (!one || parse_one(symbols, one, arena, &args[n++]) < 0)
			return err_nomem(err, "USDT probes");
		text += len;
		text += strspn(text, " \t");
	}
	*ret = args;
	return args ? n : err_nomem(err, "USDT probes");
}
