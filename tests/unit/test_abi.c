/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling convention, against compilers
 *
 * Each function below is compiled twice. Once as it is, at -O0 with debug information: from its
 * types comes where the arguments are said to be. And once as a call, of a routine that stores all
 * registers and the stack as they are at its first instruction. What is found at the places must be
 * the bytes that were passed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/sites.h>

#include "elf/elf.h"
#include "workspace.h"

enum {
	PARAMS_MAX = 10,
	XMM0 = 17,
	RSP = 7,
	STACK_BYTES = 256,
};

/* A function: its result, its parameters' types, and how many bytes of each carry the value. */
struct sample {
	const char *result;
	const char *types[PARAMS_MAX];
	unsigned int bytes[PARAMS_MAX];
	unsigned int
		n_known; /* the first so many must be known; GCC describes what is on the stack itself */
};

static const char types[] =
	"struct big { long a, b, c; };\n"
	"struct four { long a, b, c, d; };\n"
	"struct pair { long a; long b; };\n"
	"struct ld { long double x; };\n"
	"struct packed { char a; int b; } __attribute__((packed));\n"
	"struct floats { float a, b; int c; };\n"
	"struct mixed { double a; int b; };\n"
	"struct bits { unsigned long a : 3, b : 61; int c; };\n"
	"struct i128 { __int128 x; };\n"
	"union words { long double x; struct pair y; };\n"
	"struct nested { struct { char a[4]; float b; } x; struct pair y[0]; short z; };\n"
	"typedef __int128 wide;\n"
	"typedef float v4sf __attribute__((vector_size(16)));\n"
	"typedef float v2sf __attribute__((vector_size(8)));\n";

/* clang-format off */
static const struct sample samples[] = {
	{"int", {"struct big", "int"}, {24, 4}, 2},
	{"int", {"int", "long double", "int"}, {4, 10, 4}, 3},
	{"int", {"int", "struct big", "long double", "double"}, {4, 24, 10, 8}, 4},
	{"int", {"wide", "int"}, {16, 4}, 2},
	{"int", {"_Complex float", "_Complex double", "int"}, {8, 16, 4}, 3},
	{"int", {"_Complex long double", "int"}, {10, 4}, 2},
	{"int", {"struct ld", "int"}, {10, 4}, 2},
	{"int", {"struct packed", "int"}, {5, 4}, 2},
	{"int", {"int", "int", "int", "int", "int", "struct pair", "int"}, {4, 4, 4, 4, 4, 16, 4}, 7},
	{"int", {"__float128", "int"}, {16, 4}, 2},
	/* GCC and Clang before 18 differ in an __int128 on the stack. */
	{"int", {"int", "int", "int", "int", "int", "int", "int", "wide", "int"}, {4, 4, 4, 4, 4, 4, 4, 16, 4}, 7},
	{"int", {"int", "int", "int", "int", "int", "wide", "int"}, {4, 4, 4, 4, 4, 16, 4}, 5},
	{"int", {"int", "int", "int", "int", "int", "int", "wide", "int"}, {4, 4, 4, 4, 4, 4, 16, 4}, 8},
	{"int", {"int", "int", "int", "int", "int", "int", "char", "long double", "int"}, {4, 4, 4, 4, 4, 4, 1, 10, 4}, 9},
	{"int", {"struct floats", "double"}, {12, 8}, 2},
	{"int", {"struct mixed", "struct mixed", "float"}, {12, 12, 4}, 3},
	{"int", {"union words", "int"}, {10, 4}, 2},
	{"int", {"struct bits", "int"}, {12, 4}, 2},
	{"int", {"struct i128", "int"}, {16, 4}, 2},
	{"int", {"struct nested", "int"}, {10, 4}, 2},
	{"int", {"v4sf", "v2sf", "int"}, {16, 8, 4}, 3},
	/* A struct of four words may be aligned to 16 for all that its type tells. */
	{"int", {"struct big", "struct four", "int"}, {24}, 1},
	{"int", {"struct four", "struct four", "int"}, {32, 32, 4}, 3},
	{"struct big", {"int"}, {4}, 1},
	{"struct ld", {"int"}, {4}, 1},
	{"_Complex long double", {"int"}, {4}, 1},
	{"struct pair", {"int", "struct packed"}, {4, 5}, 2},
	{"wide", {"int"}, {4}, 1},
};
/* clang-format on */

enum { N_SAMPLES = sizeof(samples) / sizeof(samples[0]) };

/*
 * Stores rax ... r15 in the order of DWARF's numbers from 0 on, xmm0-7, and the stack from rsp on.
 */
static const char store[] =
	"unsigned char regs[10 * 8], vectors[8 * 16], stack[256];\n"
	"__asm__(\".text\\n.globl store\\nstore:\\n\"\n"
	"\"mov %rdx, regs+8(%rip)\\nmov %rcx, regs+16(%rip)\\nmov %rsi, regs+32(%rip)\\nmov %rdi, "
	"regs+40(%rip)\\n\"\n"
	"\"mov %r8, regs+64(%rip)\\nmov %r9, regs+72(%rip)\\n\"\n"
	"\"movups %xmm0, vectors(%rip)\\nmovups %xmm1, vectors+16(%rip)\\nmovups %xmm2, "
	"vectors+32(%rip)\\n\"\n"
	"\"movups %xmm3, vectors+48(%rip)\\nmovups %xmm4, vectors+64(%rip)\\nmovups %xmm5, "
	"vectors+80(%rip)\\n\"\n"
	"\"movups %xmm6, vectors+96(%rip)\\nmovups %xmm7, vectors+112(%rip)\\n\"\n"
	"\"mov %rsp, %rsi\\nlea stack(%rip), %rdi\\nmov $256, %ecx\\nrep movsb\\n\"\n"
	"\"lea stack(%rip), %rax\\nfldz\\nret\\n\");\n"
	"extern void store(void);\n"
	"static void print(const void *p, unsigned n) { while (n--) printf(\"%02x\", *(*(const "
	"unsigned char **)&p)++); }\n";

static unsigned int n_params(const struct sample *s)
{
	unsigned int n = 0;
	while (n < PARAMS_MAX && s->types[n])
		n++;
	return n;
}

static void put_params(FILE *f, const struct sample *s, const char *separator, const char *prefix)
{
	for (unsigned int i = 0; i < n_params(s); i++)
		fprintf(f, "%s%s %s%u", i ? separator : "", s->types[i], prefix, i);
}

/* described.c has the functions, calls.c the calls of the routine under their types. */
static void write_sources(const struct workspace *w)
{
	FILE *f = fopen(workspace_path(w, "described.c"), "w");
	assert_non_null(f);
	fputs(types, f);
	for (unsigned int k = 0; k < N_SAMPLES; k++) {
		fprintf(f, "%s f%u(", samples[k].result, k);
		put_params(f, &samples[k], ", ", "p");
		fprintf(f, ") { static %s r; return r; }\n", samples[k].result);
	}
	fprintf(f, "int main(void) { return 0; }\n");
	assert_int_equal(fclose(f), 0);
	f = fopen(workspace_path(w, "calls.c"), "w");
	assert_non_null(f);
	fprintf(f, "#include <stdio.h>\n#include <string.h>\n%s%sint main(void)\n{\n", types,
		store);
	for (unsigned int k = 0; k < N_SAMPLES; k++) {
		unsigned int n = n_params(&samples[k]);
		fputs("{ ", f);
		put_params(f, &samples[k], "; ", "p");
		fputs(";\n", f);
		for (unsigned int i = 0; i < n; i++)
			fprintf(f,
				"for (unsigned j = 0; j < sizeof(p%u); j++) ((unsigned char "
				"*)&p%u)[j] = 0x%x + j %% 32;\n",
				i, i, 16 + 23 * i);
		fprintf(f, "((%s (*)(", samples[k].result);
		put_params(f, &samples[k], ", ", "q");
		fputs("))store)(", f);
		for (unsigned int i = 0; i < n; i++)
			fprintf(f, "%sp%u", i ? ", " : "", i);
		fputs(");\n__asm__ volatile(\"fninit\");\nprint(regs, 80); print(vectors, 128); "
		      "print(stack, 256); puts(\"\");\n",
		      f);
		for (unsigned int i = 0; i < n; i++)
			fprintf(f, "print(&p%u, %u); puts(\"\");\n", i, samples[k].bytes[i]);
		fputs("}\n", f);
	}
	fputs("return 0;\n}\n", f);
	assert_int_equal(fclose(f), 0);
}

struct machine {
	uint8_t regs[10 * 8], vectors[8 * 16], stack[STACK_BYTES];
};

static void read_hex(FILE *f, uint8_t *ret, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned int byte;
		assert_int_equal(fscanf(f, "%2x", &byte), 1);
		ret[i] = (uint8_t)byte;
	}
}

/* The bytes at a piece. */
static const uint8_t *at_piece(const struct machine *m, const struct cairn_piece *p)
{
	const struct cairn_loc_step *first = &p->steps[0];
	assert_int_equal(first->op, CAIRN_LOC_REG);
	if (p->kind == CAIRN_PIECE_MEMORY) {
		assert_int_equal(first->reg, RSP);
		assert_int_equal(p->n_steps, 2);
		assert_true(p->steps[1].imm >= 8 && p->steps[1].imm < STACK_BYTES - 32);
		return m->stack + p->steps[1].imm;
	}
	if (first->reg >= XMM0)
		return m->vectors + 16 * (first->reg - XMM0);
	assert_true(first->reg < 10);
	return m->regs + 8 * first->reg;
}

static bool is_there(const struct machine *m, const struct cairn_location *loc, const uint8_t *want,
		     unsigned int n)
{
	for (uint32_t i = 0; i < loc->n_pieces; i++) {
		const struct cairn_piece *p = &loc->pieces[i];
		unsigned int size = p->size && p->size < n - p->off ? p->size : n - p->off;
		if (memcmp(at_piece(m, p), want + p->off, size))
			return false;
	}
	return true;
}

static void compare_sample(struct cairn_sites *sites, unsigned int k, const char *cc, FILE *f)
{
	struct cairn_function_list found;
	struct machine m;
	char name[16];
	read_hex(f, m.regs, sizeof(m.regs));
	read_hex(f, m.vectors, sizeof(m.vectors));
	read_hex(f, m.stack, sizeof(m.stack));
	snprintf(name, sizeof(name), "f%u", k);
	assert_int_equal(cairn_sites_find(sites, name, &found, NULL), 1);
	const struct cairn_site *site = &found.p[0]->sites[0];
	assert_int_equal(site->n_args, n_params(&samples[k]));
	for (uint32_t i = 0; i < site->n_args; i++) {
		uint8_t want[64] = {0};
		char text[128];
		read_hex(f, want, samples[k].bytes[i]);
		const struct cairn_location *loc = &site->args[i].loc;
		cairn_location_text(loc, NULL, NULL, text, sizeof(text));
		if (!loc->n_pieces && i < samples[k].n_known)
			fail_msg("%s: f%u: parameter %u (%s): %s", cc, k, i, samples[k].types[i],
				 text);
		if (loc->n_pieces && !is_there(&m, loc, want, samples[k].bytes[i]))
			fail_msg("%s: f%u: parameter %u (%s) is not at %s", cc, k, i,
				 samples[k].types[i], text);
	}
}

static void compare(const char *cc)
{
	struct workspace w;
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	workspace_open(&w);
	write_sources(&w);
	if (!workspace_try(&w,
			   "%s -O0 -g -w -o described described.c && %s -O1 -w -o calls calls.c && "
			   "./calls > out.txt",
			   cc, cc)) {
		print_message("no %s that knows all types\n", cc);
		workspace_close(&w);
		skip();
	}
	assert_int_equal(cairn_binary_open(workspace_path(&w, "described"), NULL, &bin, NULL), 0);
	assert_int_equal(cairn_sites_open(bin, NULL, &sites, NULL), 0);
	FILE *f = fopen(workspace_path(&w, "out.txt"), "r");
	assert_non_null(f);
	for (unsigned int k = 0; k < N_SAMPLES; k++)
		compare_sample(sites, k, cc, f);
	fclose(f);
	cairn_sites_close(sites);
	cairn_binary_close(bin);
	workspace_close(&w);
}

static void arguments_are_where_gcc_passes_them(void **state)
{
	(void)state;
	compare("gcc");
}

static void arguments_are_where_clang_passes_them(void **state)
{
	(void)state;
	compare("clang");
}

static enum cairn_unavailable why(struct cairn_sites *sites, const char *function, uint32_t arg)
{
	struct cairn_function_list found;
	assert_int_equal(cairn_sites_find(sites, function, &found, NULL), 1);
	assert_true(arg < found.p[0]->sites[0].n_args);
	return found.p[0]->sites[0].args[arg].loc.why;
}

/* Clang's callers leave out what is not used. */
static void a_stack_argument_counts_where_the_function_loads_it(void **state)
{
	(void)state;
	static const char *const levels[] = {"-O0", "-O2", "-O2 -fno-omit-frame-pointer"};
	for (unsigned int i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		struct workspace w;
		struct cairn_binary *bin;
		struct cairn_sites *sites;
		workspace_open(&w);
		workspace_write(
			&w, "s.c",
			"int f(int a, int b, int c, int d, int e, int g, int used, int unused)\n"
			"{ return a + b + c + d + e + g + used; }\n"
			"int main(void) { return f(1, 2, 3, 4, 5, 6, 7, 8) - 28; }\n");
		if (!workspace_try(&w, "clang %s -g -o s s.c", levels[i])) {
			workspace_close(&w);
			print_message("no clang\n");
			skip();
		}
		assert_int_equal(cairn_binary_open(workspace_path(&w, "s"), NULL, &bin, NULL), 0);
		assert_int_equal(cairn_sites_open(bin, NULL, &sites, NULL), 0);
		assert_int_equal(why(sites, "f", 6), CAIRN_AVAILABLE);
		/* Without optimisation all are loaded, and passed. */
		assert_int_equal(why(sites, "f", 7),
				 i ? CAIRN_UNAVAIL_MAY_NOT_BE_PASSED : CAIRN_AVAILABLE);
		cairn_sites_close(sites);
		cairn_binary_close(bin);
		workspace_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_where_gcc_passes_them),
		cmocka_unit_test(arguments_are_where_clang_passes_them),
		cmocka_unit_test(a_stack_argument_counts_where_the_function_loads_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
