/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sites of functions, and where their arguments are: programs that compilers made
 *
 * What DWARF seeds made by hand have of code is a few bytes. Questions about paths, registers and
 * stack slots need functions with loops, calls and spills, so the seeds are compiled here; without
 * a compiler there are none but those.
 */
#include "fuzz.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include <cairn/lines.h>
#include <cairn/sites.h>

#include "dwarf_seeds.h"
#include "elf/elf.h"
#include "workspace.h"

/* Each input is a whole program to analyse. */
const unsigned int fuzz_sites_max = 150;

/* An input has all its sites, arguments and addresses asked about: it takes long. */
const unsigned int fuzz_places_max = 200;

/* Addresses that are asked about as if a program stood there: each takes a walk over a function. */
enum { STANDS_MAX = 48, SEED_BYTES_MAX = 1 << 16 };

static int visit(void *ctx, const struct cairn_function *f)
{
	char text[512];
	struct cairn_sites *sites = ctx;
	for (uint32_t i = 0; i < f->n_sites; i++)
		for (uint32_t k = 0; k < f->sites[i].n_args; k++)
			cairn_location_text(&f->sites[i].args[k].loc, cairn_sites_symbol, sites,
					    text, sizeof(text));
	return 0;
}

/* What a register had, or what was passed, is looked for in the caller: some code before. */
static void follow(struct cairn_sites *sites, const struct cairn_location *loc, uint64_t at)
{
	struct cairn_location passed;
	struct cairn_err err = {0};
	for (uint32_t i = 0; loc->why == CAIRN_AVAILABLE && i < loc->n_pieces; i++)
		for (uint32_t k = 0; k < loc->pieces[i].n_steps; k++) {
			const struct cairn_loc_step *s = &loc->pieces[i].steps[k];
			if (s->op == CAIRN_LOC_ENTRY_REG || s->op == CAIRN_LOC_ENTRY_PARAM)
				cairn_sites_call_value(sites, (struct cairn_vaddr){at},
						       (struct cairn_vaddr){at / 2}, s, &passed,
						       &err);
		}
}

static void stand_at(struct cairn_sites *sites, uint64_t at)
{
	const struct cairn_scope *active;
	struct cairn_err err = {0};
	char text[512];
	int n = cairn_sites_at(sites, (struct cairn_vaddr){at}, at & 1, &active, &err);
	for (int i = 0; i < n; i++)
		for (uint32_t k = 0; k < active[i].n_args; k++)
			cairn_location_text(&active[i].args[k].loc, cairn_sites_symbol, sites, text,
					    sizeof(text));
	if (n > 0 && active[0].n_args)
		follow(sites, &active[0].args[0].loc, at);
}

/*
 * The lines of a function, the variables at some of them, and the first of them again as a line of
 * its file.
 */
static int visit_lines(void *ctx, const struct cairn_function *f)
{
	struct cairn_sites *sites = ctx;
	struct cairn_lines lines;
	struct cairn_err err = {0};
	char spec[300];
	int n = cairn_sites_lines(sites, f->name, &lines, &err);
	for (int i = 0; i < n && i < 8; i++) {
		struct cairn_variables vars;
		cairn_sites_vars(sites, &lines.p[i], &vars, &err);
	}
	if (n > 0 && lines.p[0].file) {
		snprintf(spec, sizeof(spec), "%s:%u", lines.p[0].file, lines.p[0].line);
		cairn_sites_lines(sites, spec, &lines, &err);
	}
	return 0;
}

static void ask(struct cairn_binary *bin, bool assume_unmodified)
{
	struct cairn_sites_opts opts = {.size = sizeof(opts),
					.assume_unmodified = assume_unmodified};
	struct cairn_sites *sites;
	struct cairn_err err = {0};
	const struct elf *e = binary_main(bin);
	if (cairn_sites_open(bin, &opts, &sites, &err) < 0)
		return;
	cairn_sites_visit(sites, visit, sites, &err);
	if (!assume_unmodified)
		cairn_sites_visit(sites, visit_lines, sites, &err);
	for (size_t i = 0, n = 0; i < elf_n_sections(e) && !assume_unmodified; i++) {
		const struct elf_section *s = elf_section_at(e, i);
		uint64_t step = s->size / STANDS_MAX + 1;
		for (uint64_t off = 0; s->flags & SHF_EXECINSTR && off < s->size && n < STANDS_MAX;
		     off += step, n++)
			stand_at(sites, s->addr.v + off);
	}
	cairn_sites_close(sites);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_binary *bin;
	struct cairn_err err;
	if (binary_open_mem(bytes, size, "input", &bin, &err) < 0)
		return 0;
	ask(bin, false);
	ask(bin, true);
	cairn_binary_close(bin);
	return 0;
}

/* Loops, copies, spills, recursion, structs by value, a switch, more arguments than registers. */
static const char source[] =
	"struct pair { long a; double b; }; struct big { long v[6]; }; struct list { struct list "
	"*next; int key; };\n"
	"volatile int sink; extern int other(int, ...); extern struct big make(struct pair p);\n"
	"static inline int step(int n, const char *s) { sink = n; return s[n & 3] + n * 3; }\n"
	"static inline struct list *find(struct list *l, int key) { while (l && l->key != key) l = "
	"l->next; return l; }\n"
	"int loops(int n, const char *s) { int sum = 0; for (int i = 0; i < n; i++) sum += step(i "
	"^ n, s + i); return sum; }\n"
	"long many(int a, long b, char c, short d, int *e, long f, int g, long h, struct big k)\n"
	"{ long x = b * h; other(a, c, d); sink = g; return x + *e + f + k.v[1] + other(c, x); }\n"
	"int by_value(struct pair p, int k) { return (int)make(p).v[k & 3] + step(k, \"abcd\"); }\n"
	"int recurse(struct list *l, int n) { return l ? recurse(l->next, n + 1) + l->key : n; }\n"
	"int pick(int n, struct list *l) { switch (n) { case 0: return other(1); case 1: return "
	"other(2, l); case 2: return sink;\n"
	" case 3: return n * 7; case 4: return other(n, n); case 5: return recurse(l, 2); } return "
	"find(l, n) ? 1 : other(n); }\n"
	"static int __attribute__((noinline)) part(struct list *l, int n, int k) { l->key += k; "
	"return l->key * n + other(k); }\n"
	"int calls_part(struct list *l, int n) { return part(l, n, 3) + part(l->next, n + 1, 3); "
	"}\n"
	"double floats(double x, float y, int n) { char buf[64]; other(n, buf); return x * y + "
	"buf[n & 63]; }\n";

static void put_file(const char *path, void (*put)(const void *bytes, size_t size))
{
	uint8_t *bytes = malloc(SEED_BYTES_MAX);
	FILE *in = fopen(path, "re");
	size_t n = in && bytes ? fread(bytes, 1, SEED_BYTES_MAX, in) : 0;
	if (n && n < SEED_BYTES_MAX)
		put(bytes, n);
	if (in)
		fclose(in);
	free(bytes);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	/* clang-format off */
	static const char *const commands[] = {
		"gcc -g -O2", "gcc -g -O0", "gcc -g -Os -gdwarf-4", "gcc -g -O1 -gno-variable-location-views", "clang -g -O2",
		"clang -g -O0",
	};
	/* clang-format on */
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "a.c", source);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (workspace_try(&w, "%s -w -c -o a.o a.c", commands[i]))
			put_file(workspace_path(&w, "a.o"), put);
	workspace_close(&w);
	dwarf_seeds_put(put);
}
