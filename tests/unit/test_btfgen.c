/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DWARF to BTF: what real compilers write, held against what the compiled program says of itself;
 * and DIE trees by hand for what no compiler writes. Whole kernels are compared with pahole and
 * with cairn sites by tests/truth.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/sites.h>

#include "alloc_fail.h"
#include "btfgen/loc_record.h"
#include "dwarf/constants.h"
#include "dwarf_builder.h"
#include "dwarf_seeds.h"
#include "elf/elf.h"
#include "workspace.h"

/* What came out of one binary, opened. */
struct distilled {
	struct cairn_binary *bin;
	struct cairn_btfgen d;
	struct cairn_btf *main, *inlined, *vars;
};

static void complain(void *ctx, uint32_t id, uint64_t off, const char *text)
{
	print_message("%s: [%u] at %llu: %s\n", (const char *)ctx, id, (unsigned long long)off,
		      text);
}

static struct cairn_btf *open_blob(const struct cairn_btfgen_blob *b, const struct cairn_btf *base,
				   const char *name)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = base};
	struct cairn_err err = {0};
	struct cairn_btf *btf;
	if (!b->bytes)
		return NULL;
	if (cairn_btf_open_mem(b->bytes, b->size, name, &opts, &btf, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(cairn_btf_check(btf, complain, (void *)name), 0);
	return btf;
}

/* Every blob that is made here keeps all rules of the format. */
static struct distilled distil_binary(struct cairn_binary *bin, enum cairn_btfgen_vars vars,
				      unsigned int threads)
{
	struct cairn_btfgen_opts opts = {
		.size = sizeof(opts), .threads = threads, .vars = vars, .dialect = CAIRN_BTF_LOC_N};
	struct distilled r = {.bin = bin};
	struct cairn_err err = {0};
	if (cairn_btf_from_dwarf(bin, &opts, &r.d, &err) < 0)
		fail_msg("%s", err.msg);
	r.main = open_blob(&r.d.main, NULL, "main");
	r.inlined = open_blob(&r.d.inlined, r.main, "inlined");
	r.vars = open_blob(&r.d.vars, r.main, "vars");
	return r;
}

static struct distilled distil_file(const char *path, enum cairn_btfgen_vars vars,
				    unsigned int threads)
{
	struct cairn_binary *bin;
	struct cairn_err err = {0};
	if (cairn_binary_open(path, NULL, &bin, &err) < 0)
		fail_msg("%s", err.msg);
	return distil_binary(bin, vars, threads);
}

static struct distilled distil_db(struct db *db)
{
	struct cairn_binary *bin;
	struct cairn_err err = {0};
	size_t size;
	uint8_t *bytes = db_finish(db, &size);
	assert_int_equal(binary_open_mem(bytes, size, "input", &bin, &err), 0);
	return distil_binary(bin, CAIRN_BTFGEN_VARS_NONE, 1);
}

static void shut(struct distilled *r)
{
	cairn_btf_close(r->vars);
	cairn_btf_close(r->inlined);
	cairn_btf_close(r->main);
	cairn_btfgen_free(&r->d);
	cairn_binary_close(r->bin);
}

static struct cairn_btf_type type_of(const struct cairn_btf *btf, const char *name, uint32_t kind)
{
	struct cairn_btf_type t = {0};
	uint32_t id = cairn_btf_find(btf, name, kind, 0);
	if (!id)
		fail_msg("no %s of kind %u", name, kind);
	assert_true(cairn_btf_type(btf, id, &t));
	return t;
}

static unsigned int count_of(const struct cairn_btf *btf, const char *name, uint32_t kind)
{
	unsigned int n = 0;
	for (uint32_t id = 0; (id = cairn_btf_find(btf, name, kind, id));)
		n++;
	return n;
}

static struct cairn_btf_type target(const struct cairn_btf *btf, uint32_t id)
{
	struct cairn_btf_type t = {0};
	assert_true(cairn_btf_type(btf, id, &t));
	return t;
}

/* ---- what compilers write ---- */

static const char layout_source[] =
	"#include <stdio.h>\n"
	"#include <stddef.h>\n"
	"typedef struct { char c; double d; } pair_t;\n"
	"struct part { short a; int b[2][3]; };\n"
	"struct all { char c; struct part part; pair_t pair; union { int i; float f; } u; void *p; "
	"long l; _Bool b; };\n"
	"struct bits { unsigned int x : 3; int y : 7; unsigned long z : 40; };\n"
	"enum small { S_A, S_B = -7 };\n"
	"enum wide { W = 0x123456789abULL };\n"
	"typedef int (*callback)(struct all *, const char *, ...);\n"
	"struct all all; struct bits bits; enum small small; enum wide wide; callback cb;\n"
	"#define M(s, m) printf(\"m \" #s \" \" #m \" %zu\\n\", offsetof(struct s, m))\n"
	"__attribute__((used, noinline, noipa)) int visible(struct all *a, long n) { return a->c + "
	"(int)n; }\n"
	"int main(void)\n"
	"{\n"
	"	M(all, c); M(all, part); M(all, pair); M(all, u); M(all, p); M(all, l); M(all, "
	"b);\n"
	"	M(part, a); M(part, b);\n"
	"	printf(\"s all %zu\\ns part %zu\\ns bits %zu\\n\", sizeof(struct all), "
	"sizeof(struct part), sizeof(struct bits));\n"
	"	return visible(&all, 0);\n"
	"}\n";

static bool has_member(const struct cairn_btf *btf, const char *type, const char *name,
		       uint32_t bytes)
{
	struct cairn_btf_type t = type_of(btf, type, CAIRN_BTF_STRUCT);
	for (uint32_t i = 0; i < t.vlen; i++) {
		struct cairn_btf_member m = cairn_btf_member(&t, i);
		if (!strcmp(cairn_btf_string(btf, m.name_off), name))
			return m.bit_off == 8 * bytes && !m.bit_size;
	}
	return false;
}

/* The program prints where its members are. */
static void compare_with_program(const struct workspace *w, const struct cairn_btf *btf)
{
	workspace_run(w, "./s >said");
	FILE *said = fopen(workspace_path(w, "said"), "r");
	char line[128], type[32], member[32];
	unsigned int n, checked = 0;
	assert_non_null(said);
	while (fgets(line, sizeof(line), said)) {
		if (sscanf(line, "s %31s %u", type, &n) == 2)
			assert_int_equal(type_of(btf, type, CAIRN_BTF_STRUCT).ref, n);
		else if (sscanf(line, "m %31s %31s %u", type, member, &n) == 3 &&
			 !has_member(btf, type, member, n))
			fail_msg("%s.%s is not at %u", type, member, n);
		checked++;
	}
	fclose(said);
	assert_int_equal(checked, 12);
}

static void check_layouts(const struct cairn_btf *btf)
{
	struct cairn_btf_type bits = type_of(btf, "bits", CAIRN_BTF_STRUCT);
	struct cairn_btf_member z = cairn_btf_member(&bits, 2);
	assert_true(bits.kflag);
	assert_int_equal(z.bit_size, 40);
	struct cairn_btf_type small = type_of(btf, "small", CAIRN_BTF_ENUM);
	assert_int_equal(cairn_btf_enumerator(&small, 1).value, -7);
	struct cairn_btf_type wide = type_of(btf, "wide", CAIRN_BTF_ENUM64);
	assert_int_equal(cairn_btf_enumerator(&wide, 0).value, 0x123456789ab);
	/* int b[2][3]: the outer dimension first. */
	struct cairn_btf_type part = type_of(btf, "part", CAIRN_BTF_STRUCT);
	struct cairn_btf_type outer = target(btf, cairn_btf_member(&part, 1).type);
	struct cairn_btf_type inner = target(btf, outer.words[0]);
	assert_int_equal(outer.words[2], 2);
	assert_int_equal(inner.words[2], 3);
	assert_string_equal(target(btf, inner.words[0]).name, "int");
	/* The prototype ends with "...". */
	struct cairn_btf_type proto =
		target(btf, target(btf, type_of(btf, "callback", CAIRN_BTF_TYPEDEF).ref).ref);
	assert_int_equal(proto.kind, CAIRN_BTF_FUNC_PROTO);
	assert_int_equal(cairn_btf_param(&proto, 2).type, 0);
	struct cairn_btf_type func = type_of(btf, "visible", CAIRN_BTF_FUNC);
	assert_int_equal(func.vlen, CAIRN_BTF_GLOBAL);
	struct cairn_btf_type visible = target(btf, func.ref);
	assert_int_equal(visible.vlen, 2);
	assert_string_equal(cairn_btf_string(btf, cairn_btf_param(&visible, 0).name_off), "a");
}

static void types_are_as_the_program_says(void **state)
{
	static const char *const builds[] = {
		"gcc -O2 -gdwarf-5", "gcc -O0 -gdwarf-4",        "gcc -gdwarf-2 -gstrict-dwarf",
		"gcc -gdwarf64",     "clang -O2 -gdwarf-5",      "clang -gdwarf-4",
		"gcc -O2 -flto",     "gcc -fdebug-types-section"};
	struct workspace w;
	unsigned int compared = 0;
	workspace_open(&w);
	workspace_write(&w, "s.c", layout_source);
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		if (!workspace_try(&w, "%s -g -o s s.c", builds[i])) {
			print_message("skipped: %s does not work here\n", builds[i]);
			continue;
		}
		struct distilled r = distil_file(workspace_path(&w, "s"), CAIRN_BTFGEN_VARS_ALL, 2);
		compare_with_program(&w, r.main);
		check_layouts(r.main);
		assert_int_equal(count_of(r.main, "all", CAIRN_BTF_VAR), 1);
		shut(&r);
		compared++;
	}
	workspace_close(&w);
	if (!compared)
		skip();
}

static const char *const unit_sources[] = {
	"struct s { int x; }; struct user { struct s *p; }; struct outer { struct user u; };\n"
	"struct opaque; struct holder { struct opaque *o; };\n"
	"int a(struct outer *o, struct holder *h) { return o->u.p->x; }\n",
	"struct s { long y; char z; }; struct user { struct s *p; }; struct outer { struct user u; "
	"};\n"
	"struct opaque { int inside; }; struct holder { struct opaque *o; };\n"
	"int b(struct outer *o, struct holder *h) { return o->u.p->z + h->o->inside; }\n",
	"struct outer; int a(), b(); int main(void) { return a(0, 0) + b(0, 0); }\n",
};

/* The member at the end of a way through pointers and structs: "u", "p". */
static struct cairn_btf_type follow(const struct cairn_btf *btf, struct cairn_btf_type t,
				    const char *const *way)
{
	for (; *way; way++) {
		uint32_t to = 0;
		for (uint32_t i = 0; i < t.vlen; i++)
			if (!strcmp(cairn_btf_string(btf, cairn_btf_member(&t, i).name_off), *way))
				to = cairn_btf_member(&t, i).type;
		t = target(btf, to);
		if (t.kind == CAIRN_BTF_PTR)
			t = target(btf, t.ref);
	}
	return t;
}

static struct cairn_btf_type parameter(const struct cairn_btf *btf, const char *func, uint32_t i)
{
	struct cairn_btf_type proto = target(btf, type_of(btf, func, CAIRN_BTF_FUNC).ref);
	return target(btf, target(btf, cairn_btf_param(&proto, i).type).ref);
}

static void a_name_with_two_meanings_keeps_what_leads_to_it_apart(void **state)
{
	static const char *const way[] = {"u", "p", NULL}, *const opaque[] = {"o", NULL};
	static const char names[3][4] = {"0.c", "1.c", "2.c"};
	struct workspace w;
	workspace_open(&w);
	for (int i = 0; i < 3; i++)
		workspace_write(&w, names[i], unit_sources[i]);
	workspace_run(&w, "gcc -std=gnu17 -g -w -o s 0.c 1.c 2.c");
	struct distilled r = distil_file(workspace_path(&w, "s"), CAIRN_BTFGEN_VARS_NONE, 2);
	assert_int_equal(count_of(r.main, "s", CAIRN_BTF_STRUCT), 2);
	assert_int_equal(count_of(r.main, "user", CAIRN_BTF_STRUCT), 2);
	assert_int_equal(count_of(r.main, "outer", CAIRN_BTF_STRUCT), 2);
	assert_int_equal(follow(r.main, parameter(r.main, "a", 0), way).ref, 4);
	assert_int_equal(follow(r.main, parameter(r.main, "b", 0), way).ref, 16);
	/* What one unit only declares is what the other defines. */
	assert_int_equal(count_of(r.main, "holder", CAIRN_BTF_STRUCT), 1);
	assert_int_equal(count_of(r.main, "opaque", CAIRN_BTF_FWD), 0);
	assert_int_equal(follow(r.main, parameter(r.main, "a", 1), opaque).kind, CAIRN_BTF_STRUCT);
	shut(&r);
	workspace_close(&w);
}

static const char local_source[] =
	"int f(void *v) { struct n { struct n *next; int x; } *p = v; return p->next->x; }\n"
	"int g(void *v) { struct n { struct n *next; long y[4]; } *p = v; return "
	"(int)p->next->y[1]; }\n"
	"int main(void) { return f(0) + g(0); }\n";

static void structs_inside_functions_refer_to_themselves(void **state)
{
	static const char *const way[] = {"next", NULL};
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "s.c", local_source);
	workspace_run(&w, "gcc -g -o s s.c");
	struct distilled r = distil_file(workspace_path(&w, "s"), CAIRN_BTFGEN_VARS_NONE, 1);
	unsigned int n = 0;
	for (uint32_t id = 0; (id = cairn_btf_find(r.main, "n", CAIRN_BTF_STRUCT, id)); n++)
		assert_int_equal(follow(r.main, target(r.main, id), way).id, id);
	assert_int_equal(n, 2);
	shut(&r);
	workspace_close(&w);
}

static void cxx_types_have_qualified_names_and_bases(void **state)
{
	static const char source[] = "namespace n { struct base { int a; }; struct derived : base "
				     "{ long b; static int s; };\n"
				     "int take(derived &d, int derived::*) { return d.a; } }\n"
				     "int n::derived::s = 1;\n"
				     "int main() { n::derived d; return n::take(d, nullptr); }\n";
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "s.cc", source);
	if (!workspace_try(&w, "g++ -g -o s s.cc")) {
		workspace_close(&w);
		print_message("skipped: no g++\n");
		skip();
	}
	struct cairn_binary *bin;
	struct cairn_btfgen d;
	struct cairn_err err = {0};
	assert_int_equal(cairn_binary_open(workspace_path(&w, "s"), NULL, &bin, &err), 0);
	assert_int_equal(cairn_btf_from_dwarf(bin, NULL, &d, &err), 0);
	struct cairn_btf *btf;
	assert_int_equal(cairn_btf_open_mem(d.main.bytes, d.main.size, "main", NULL, &btf, &err),
			 0);
	struct cairn_btf_type derived = type_of(btf, "n::derived", CAIRN_BTF_STRUCT);
	assert_int_equal(derived.vlen, 2);
	assert_string_equal(target(btf, cairn_btf_member(&derived, 0).type).name, "n::base");
	assert_int_equal(cairn_btf_member(&derived, 1).bit_off, 64);
	assert_true(d.losses[CAIRN_LOSS_REFERENCE] > 0 && d.losses[CAIRN_LOSS_MEMBER_POINTER] > 0);
	cairn_btf_close(btf);
	cairn_btfgen_free(&d);
	cairn_binary_close(bin);
	workspace_close(&w);
}

/* ---- sites ---- */

static const char inline_source[] = "#include <stdlib.h>\n"
				    "struct q { int n; struct q *next; };\n"
				    "static inline __attribute__((always_inline)) int add(struct q "
				    "*q, int by, const char *why)\n"
				    "{ q->n += by; return q->next ? q->next->n : *why; }\n"
				    "static __attribute__((noinline)) int both(struct q *q, int k) "
				    "{ return add(q, k, \"x\") + add(q->next, 7, 0); }\n"
				    "int main(int c, char **v) { struct q a = {c}, b = {2, &a}; "
				    "return both(&b, atoi(v[0])); }\n";

static unsigned int inlined_sites(struct cairn_binary *bin, const char *name)
{
	struct cairn_sites *sites;
	struct cairn_function_list found;
	unsigned int n = 0;
	assert_int_equal(cairn_sites_open(bin, NULL, &sites, NULL), 0);
	assert_true(cairn_sites_find(sites, name, &found, NULL) > 0);
	for (uint32_t i = 0; i < found.p[0]->n_sites; i++)
		n += found.p[0]->sites[i].kind == CAIRN_SITE_INLINED;
	cairn_sites_close(sites);
	return n;
}

static void copies_are_sites_of_a_function_that_main_does_not_have(void **state)
{
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "s.c", inline_source);
	workspace_run(&w, "gcc -g -O2 -o s s.c");
	struct distilled r = distil_file(workspace_path(&w, "s"), CAIRN_BTFGEN_VARS_NONE, 2);
	assert_int_equal(count_of(r.main, "add", CAIRN_BTF_FUNC), 0);
	struct cairn_btf_type add = type_of(r.inlined, "add", CAIRN_BTF_FUNC);
	assert_int_equal(target(r.inlined, add.ref).vlen, 3);
	struct cairn_btf_type text = type_of(r.inlined, ".text", CAIRN_BTF_LOCSEC);
	unsigned int n = 0, constants = 0;
	for (uint32_t i = 0; i < text.vlen; i++) {
		struct cairn_btf_loc loc = cairn_btf_loc(r.inlined, &text, i);
		struct cairn_btf_type proto = target(r.inlined, loc.loc_proto);
		if (loc.func != add.id)
			continue;
		n++;
		assert_int_equal(proto.vlen, 3);
		if (!proto.words[1])
			continue;
		struct cairn_btf_type by = target(r.inlined, proto.words[1]);
		struct cairn_btf_loc_param p = cairn_btf_loc_param(r.inlined, &by);
		constants += p.flags == CAIRN_BTF_LOC_CONST && p.value == 7 && p.size == 4;
	}
	assert_int_equal(n, inlined_sites(r.bin, "add"));
	assert_int_equal(n, 2);
	assert_int_equal(constants, 1);
	shut(&r);
	workspace_close(&w);
}

static bool same_blob(const struct cairn_btfgen_blob *a, const struct cairn_btfgen_blob *b)
{
	return a->size == b->size && (!a->size || !memcmp(a->bytes, b->bytes, a->size));
}

static void any_number_of_threads_gives_the_same_bytes(void **state)
{
	static const unsigned int threads[] = {2, 3, 8};
	struct workspace w;
	workspace_open(&w);
	for (int i = 0; i < 3; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d.c", i);
		workspace_write(&w, name, unit_sources[i]);
	}
	workspace_write(&w, "3.c", local_source);
	workspace_run(&w,
		      "sed -i s/main/other/ 3.c && gcc -std=gnu17 -g -O1 -w -o s 0.c 1.c 2.c 3.c");
	struct distilled one = distil_file(workspace_path(&w, "s"), CAIRN_BTFGEN_VARS_SPLIT, 1);
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
		struct distilled r =
			distil_file(workspace_path(&w, "s"), CAIRN_BTFGEN_VARS_SPLIT, threads[i]);
		assert_true(same_blob(&one.d.main, &r.d.main));
		assert_true(same_blob(&one.d.inlined, &r.d.inlined));
		assert_true(same_blob(&one.d.vars, &r.d.vars));
		shut(&r);
	}
	shut(&one);
	workspace_close(&w);
}

static void what_the_base_has_is_not_written_again(void **state)
{
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "s.c", layout_source);
	workspace_write(&w, "m.c",
			"struct part { short a; int b[2][3]; }; struct own { struct part p; struct "
			"own *next; };\n"
			"int take(struct own *o) { return o->p.b[1][2]; }\n");
	workspace_run(&w, "gcc -g -o s s.c && gcc -g -c -o m.o m.c");
	struct distilled base = distil_file(workspace_path(&w, "s"), CAIRN_BTFGEN_VARS_NONE, 1);
	struct cairn_btfgen_opts opts = {.size = sizeof(opts), .base = base.main};
	struct cairn_btf_open_opts on_base = {.size = sizeof(on_base), .base = base.main};
	struct cairn_btfgen d;
	struct cairn_btf *btf;
	struct cairn_binary *module;
	struct cairn_err err = {0};
	/* On itself nothing is left but the functions. */
	assert_int_equal(cairn_btf_from_dwarf(base.bin, &opts, &d, &err), 0);
	assert_int_equal(d.n_types, d.n_functions);
	cairn_btfgen_free(&d);
	assert_int_equal(cairn_binary_open(workspace_path(&w, "m.o"), NULL, &module, &err), 0);
	assert_int_equal(cairn_btf_from_dwarf(module, &opts, &d, &err), 0);
	assert_int_equal(
		cairn_btf_open_mem(d.main.bytes, d.main.size, "module", &on_base, &btf, &err), 0);
	char who[] = "module";
	assert_int_equal(cairn_btf_check(btf, complain, who), 0);
	struct cairn_btf_type own = type_of(btf, "own", CAIRN_BTF_STRUCT);
	assert_true(own.id >= cairn_btf_start_id(btf));
	assert_int_equal(cairn_btf_member(&own, 0).type,
			 type_of(base.main, "part", CAIRN_BTF_STRUCT).id);
	cairn_btf_close(btf);
	cairn_btfgen_free(&d);
	cairn_binary_close(module);
	shut(&base);
	workspace_close(&w);
}

/* ---- one location as a record ---- */

static struct cairn_location value_of(const struct cairn_loc_step *steps, uint32_t n,
				      enum cairn_piece_kind kind)
{
	static struct cairn_piece piece;
	piece = (struct cairn_piece){.kind = kind, .n_steps = n, .steps = steps};
	return (struct cairn_location){.n_pieces = 1, .pieces = &piece};
}

#define STEPS(kind, ...)                                                                           \
	value_of((const struct cairn_loc_step[]){__VA_ARGS__},                                     \
		 sizeof((const struct cairn_loc_step[]){__VA_ARGS__}) /                            \
			 sizeof(struct cairn_loc_step),                                            \
		 kind)
#define REG(n)                                                                                     \
	{                                                                                          \
		.op = CAIRN_LOC_REG, .reg = (n)                                                    \
	}
#define OP(o, k)                                                                                   \
	{                                                                                          \
		.op = (o), .imm = (k)                                                              \
	}
#define CUT(o, n)                                                                                  \
	{                                                                                          \
		.op = (o), .size = (n)                                                             \
	}

/* What the base only declares leads to the definition; what lies further off stays the base's. */
static void what_the_base_only_declares_is_found(void **state)
{
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "s.c",
			"struct near { struct s *p; }; struct far { struct near *n; }; struct two "
			"{ int i; };\n"
			"struct user { struct two *t; };\n"
			"int f(struct far *f, struct user *u) { return f->n->p || u->t->i; }\n");
	workspace_write(&w, "m.c",
			"struct s { int x; }; struct near { struct s *p; }; struct far { struct "
			"near *n; };\n"
			"struct two { long l; }; struct user { struct two *t; };\n"
			"long g(struct s *s, struct near *n, struct far *f, struct user *u)\n"
			"{ return s->x + n->p->x + f->n->p->x + u->t->l; }\n");
	workspace_run(&w, "gcc -g -c -o s.o s.c && gcc -g -c -o m.o m.c");
	struct distilled base = distil_file(workspace_path(&w, "s.o"), CAIRN_BTFGEN_VARS_NONE, 1);
	struct cairn_btfgen_opts opts = {.size = sizeof(opts), .base = base.main};
	struct cairn_btfgen d;
	struct cairn_btf *btf;
	struct cairn_binary *module;
	struct cairn_err err = {0};
	assert_int_equal(cairn_binary_open(workspace_path(&w, "m.o"), NULL, &module, &err), 0);
	assert_int_equal(cairn_btf_from_dwarf(module, &opts, &d, &err), 0);
	btf = open_blob(&d.main, base.main, "module");
	uint32_t start = cairn_btf_start_id(btf);
	struct cairn_btf_type g = type_of(btf, "g", CAIRN_BTF_FUNC), proto = target(btf, g.ref);
	static const struct {
		const char *name;
		bool own;
	} params[] = {{"s", true}, {"near", true}, {"far", false}, {"user", true}};
	for (uint32_t i = 0; i < 4; i++) {
		struct cairn_btf_type t =
			target(btf, target(btf, cairn_btf_param(&proto, i).type).ref);
		assert_int_equal(t.kind, CAIRN_BTF_STRUCT);
		assert_string_equal(t.name, params[i].name);
		assert_int_equal(t.id >= start, params[i].own);
	}
	struct cairn_btf_type near = type_of(btf, "near", CAIRN_BTF_STRUCT);
	near = target(btf, cairn_btf_member(&near, 0).type);
	assert_int_equal(target(btf, near.ref).kind, CAIRN_BTF_STRUCT);
	/* What the base defines in another way is not written a second time as the base has it. */
	assert_true(cairn_btf_find(btf, "user", CAIRN_BTF_STRUCT,
				   type_of(btf, "user", CAIRN_BTF_STRUCT).id) < start);
	cairn_btf_close(btf);
	cairn_btfgen_free(&d);
	cairn_binary_close(module);
	shut(&base);
	workspace_close(&w);
}

static const struct loc_value four = {.bytes = 4, .base = 0x1000},
			      four_signed = {.bytes = 4, .is_signed = true},
			      eight = {.bytes = 8, .base = 0x1000};

static struct cairn_btf_loc_param record(struct cairn_location loc, const struct loc_value *value)
{
	struct cairn_btf_loc_param p;
	enum cairn_btfgen_loss loss;
	assert_true(loc_record(&loc, value, &p, &loss));
	return p;
}

static enum cairn_btfgen_loss refused(struct cairn_location loc, const struct loc_value *value)
{
	struct cairn_btf_loc_param p;
	enum cairn_btfgen_loss loss;
	assert_false(loc_record(&loc, value, &p, &loss));
	return loss;
}

static void registers_and_memory_are_told_apart(void **state)
{
	struct cairn_btf_loc_param p = record(STEPS(CAIRN_PIECE_VALUE, REG(5)), &four);
	assert_int_equal(p.flags, CAIRN_BTF_LOC_REG);
	assert_int_equal(p.reg[0], 5);
	assert_int_equal(p.size, 4);
	p = record(STEPS(CAIRN_PIECE_VALUE, REG(5), OP(CAIRN_LOC_ADD, -16)), &eight);
	assert_int_equal(p.flags, CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_OFFSET);
	assert_int_equal(p.offset, -16);
	p = record(STEPS(CAIRN_PIECE_MEMORY, REG(7), OP(CAIRN_LOC_ADD, 8)), &eight);
	assert_int_equal(p.flags, CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_DEREF | CAIRN_BTF_LOC_OFFSET);
	p = record(STEPS(CAIRN_PIECE_VALUE, REG(7), OP(CAIRN_LOC_ADD, 8), CUT(CAIRN_LOC_LOAD, 8)),
		   &four);
	assert_int_equal(p.flags, CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_DEREF | CAIRN_BTF_LOC_OFFSET);
}

static void a_null_pointer_is_no_address(void **state)
{
	struct cairn_btf_loc_param p =
		record(STEPS(CAIRN_PIECE_VALUE, OP(CAIRN_LOC_CONST, 0)), &eight);
	assert_int_equal(p.flags, CAIRN_BTF_LOC_CONST);
	p = record(STEPS(CAIRN_PIECE_VALUE, OP(CAIRN_LOC_ADDR, 0x1234)), &eight);
	assert_int_equal(p.flags, CAIRN_BTF_LOC_CONST | CAIRN_BTF_LOC_ADDR);
	assert_int_equal(p.value, 0x234);
	assert_int_equal(refused(STEPS(CAIRN_PIECE_VALUE, OP(CAIRN_LOC_ADDR, 0x234)), &eight),
			 CAIRN_LOSS_LOC_FAR);
}

static void constants_are_cut_to_their_type(void **state)
{
	struct cairn_btf_loc_param p =
		record(STEPS(CAIRN_PIECE_VALUE, OP(CAIRN_LOC_CONST, -1)), &four);
	assert_int_equal(p.value, UINT32_MAX);
	assert_int_equal(p.flags, CAIRN_BTF_LOC_CONST);
	p = record(STEPS(CAIRN_PIECE_VALUE, OP(CAIRN_LOC_CONST, 0xffffffff)), &four_signed);
	assert_int_equal(p.value, -1);
	assert_int_equal(p.flags, CAIRN_BTF_LOC_CONST | CAIRN_BTF_LOC_SIGNED);
}

static void steps_that_only_cut_are_dropped_and_others_refused(void **state)
{
	struct cairn_location mask =
		STEPS(CAIRN_PIECE_VALUE, REG(0), OP(CAIRN_LOC_AND, 0xffffffff));
	assert_int_equal(record(mask, &four).flags, CAIRN_BTF_LOC_REG);
	assert_int_equal(refused(mask, &eight), CAIRN_LOSS_LOC_LONG);
	struct cairn_location sext =
		STEPS(CAIRN_PIECE_VALUE, REG(0), OP(CAIRN_LOC_SHL, 32), OP(CAIRN_LOC_SAR, 32));
	assert_int_equal(record(sext, &four).flags, CAIRN_BTF_LOC_REG);
	assert_int_equal(refused(sext, &eight), CAIRN_LOSS_LOC_LONG);
	struct cairn_location chain = STEPS(CAIRN_PIECE_MEMORY, REG(0), CUT(CAIRN_LOC_LOAD, 8));
	assert_int_equal(refused(chain, &eight), CAIRN_LOSS_LOC_LONG);
	struct cairn_location half = STEPS(CAIRN_PIECE_VALUE, REG(0), CUT(CAIRN_LOC_LOAD, 4));
	assert_int_equal(refused(half, &eight), CAIRN_LOSS_LOC_LONG);
}

static void sixteen_bytes_are_two_registers(void **state)
{
	static const struct cairn_loc_step a = REG(5), b = REG(4);
	struct cairn_piece pieces[] = {
		{.kind = CAIRN_PIECE_VALUE, .size = 8, .n_steps = 1, .steps = &a},
		{.kind = CAIRN_PIECE_VALUE, .off = 8, .size = 8, .n_steps = 1, .steps = &b}};
	struct cairn_location loc = {.n_pieces = 2, .pieces = pieces};
	struct loc_value value = {.bytes = 16};
	struct cairn_btf_loc_param p = record(loc, &value);
	assert_int_equal(p.n_regs, 2);
	assert_int_equal(p.reg[0], 5);
	assert_int_equal(p.reg[1], 4);
	pieces[1].off = 4;
	assert_int_equal(refused(loc, &value), CAIRN_LOSS_LOC_PIECES);
	loc.why = CAIRN_UNAVAIL_CALLER;
	assert_int_equal(refused(loc, &value), CAIRN_N_LOSSES);
}

/* ---- what no compiler writes ---- */

static struct db *begin(void)
{
	struct db *db = db_new((struct db_format){.version = 5});
	db_unit(db, DW_UT_compile);
	DB_DIE(db, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "a.c"),
	       DB_U(DW_AT_language, DW_FORM_data1, DW_LANG_C11));
	return db;
}

static struct distilled finish(struct db *db)
{
	db_null(db);
	db_unit_end(db);
	return distil_db(db);
}

static void a_hundred_thousand_pointers_deep_is_no_matter(void **state)
{
	enum { DEEP = 100000 };
	struct db *db = begin();
	int *at = malloc((DEEP + 1) * sizeof(*at));
	assert_non_null(at);
	for (int i = 0; i <= DEEP; i++)
		at[i] = db_label(db);
	db_here(db, at[DEEP]);
	DB_DIE(db, DW_TAG_typedef, DB_LEAF, DB_STR(DW_AT_name, "top"), DB_REF(DW_AT_type, at[0]));
	for (int i = 0; i < DEEP; i++) {
		db_here(db, at[i]);
		if (i + 1 < DEEP)
			DB_DIE(db, DW_TAG_pointer_type, DB_LEAF, DB_REF(DW_AT_type, at[i + 1]));
		else
			DB_DIE(db, DW_TAG_pointer_type, DB_LEAF);
	}
	free(at);
	struct distilled r = finish(db);
	assert_int_equal(cairn_btf_end_id(r.main), DEEP + 2);
	shut(&r);
	db_free(db);
}

static void types_that_only_refer_to_themselves_end(void **state)
{
	struct db *db = begin();
	int a = db_label(db), b = db_label(db);
	db_here(db, a);
	DB_DIE(db, DW_TAG_const_type, DB_LEAF, DB_REF(DW_AT_type, b));
	db_here(db, b);
	DB_DIE(db, DW_TAG_pointer_type, DB_LEAF, DB_REF(DW_AT_type, a));
	DB_DIE(db, DW_TAG_typedef, DB_LEAF, DB_STR(DW_AT_name, "loop"), DB_REF(DW_AT_type, a));
	db_null(db);
	db_unit_end(db);
	struct cairn_binary *bin;
	struct cairn_btfgen d;
	size_t size;
	uint8_t *bytes = db_finish(db, &size);
	assert_int_equal(binary_open_mem(bytes, size, "input", &bin, NULL), 0);
	assert_int_equal(cairn_btf_from_dwarf(bin, NULL, &d, NULL), 0);
	cairn_btfgen_free(&d);
	cairn_binary_close(bin);
	db_free(db);
}

/*
 * "int *p" and "void f(int a)" with the tags "x" and "y" each, as GCC 16 says it; @circle: the list
 * has no end.
 */
static struct distilled with_gcc_tags(struct db *db, bool circle)
{
	int integer = db_label(db), type[2] = {db_label(db), db_label(db)},
	    decl[2] = {db_label(db), db_label(db)};
	db_here(db, integer);
	DB_DIE(db, DW_TAG_base_type, DB_LEAF, DB_STR(DW_AT_name, "int"),
	       DB_U(DW_AT_byte_size, DW_FORM_data1, 4),
	       DB_U(DW_AT_encoding, DW_FORM_data1, DW_ATE_signed));
	DB_DIE(db, DW_TAG_pointer_type, DB_LEAF, DB_REF(DW_AT_type, integer),
	       DB_REF(DW_AT_GNU_annotation, type[1]));
	DB_DIE(db, DW_TAG_subprogram, DB_CHILDREN, DB_STR(DW_AT_name, "f"),
	       DB_REF(DW_AT_GNU_annotation, decl[1]), DB_U(DW_AT_low_pc, DW_FORM_addr, 0x1000));
	DB_DIE(db, DW_TAG_formal_parameter, DB_LEAF, DB_STR(DW_AT_name, "a"),
	       DB_REF(DW_AT_type, integer), DB_REF(DW_AT_GNU_annotation, decl[0]));
	db_null(db);
	for (int i = 0; i < 4; i++) {
		int *of = i < 2 ? type : decl;
		db_here(db, of[i & 1]);
		const char *name = i < 2 ? "btf_type_tag" : "btf_decl_tag",
			   *text = i & 1 ? "y" : "x";
		if (i & 1 || circle)
			DB_DIE(db, DW_TAG_GNU_annotation, DB_LEAF, DB_STR(DW_AT_name, name),
			       DB_STR(DW_AT_const_value, text),
			       DB_REF(DW_AT_GNU_annotation, of[!(i & 1)]));
		else
			DB_DIE(db, DW_TAG_GNU_annotation, DB_LEAF, DB_STR(DW_AT_name, name),
			       DB_STR(DW_AT_const_value, text));
	}
	return finish(db);
}

static struct cairn_btf_type record_at(const struct distilled *d, uint32_t id)
{
	struct cairn_btf_type t;
	assert_true(cairn_btf_type(d->main, id, &t));
	return t;
}

static int32_t component_of(const struct cairn_btf_type *t)
{
	assert_int_equal(t->n_words, 1);
	return (int32_t)t->words[0];
}

static void the_last_of_gccs_tags_is_told_first(void **state)
{
	struct db *db = begin();
	struct distilled d = with_gcc_tags(db, false);
	uint32_t n_decl = 0, end = cairn_btf_end_id(d.main);
	static const struct {
		const char *text;
		int32_t component;
	} wanted[] = {{"x", -1}, {"y", -1}, {"x", 0}};
	for (uint32_t id = 1; id < end; id++) {
		struct cairn_btf_type t = record_at(&d, id);
		if (t.kind == CAIRN_BTF_PTR) {
			/*
			 * The one written last is the first that a reader comes to, as from Clang.
			 */
			struct cairn_btf_type outer = record_at(&d, t.ref),
					      inner = record_at(&d, outer.ref);
			assert_string_equal(cairn_btf_string(d.main, outer.name_off), "y");
			assert_string_equal(cairn_btf_string(d.main, inner.name_off), "x");
			assert_int_equal(record_at(&d, inner.ref).kind, CAIRN_BTF_INT);
		}
		if (t.kind == CAIRN_BTF_DECL_TAG) {
			assert_true(n_decl < 3);
			assert_string_equal(cairn_btf_string(d.main, t.name_off),
					    wanted[n_decl].text);
			assert_int_equal(component_of(&t), wanted[n_decl++].component);
			assert_int_equal(record_at(&d, t.ref).kind, CAIRN_BTF_FUNC);
		}
	}
	assert_int_equal(n_decl, 3);
	shut(&d);
	db_free(db);
}

static void a_circle_of_tags_ends(void **state)
{
	struct db *db = begin();
	struct distilled d = with_gcc_tags(db, true);
	shut(&d);
	db_free(db);
}

/* Whatever comes out of damaged input, it is an error or BTF that can be opened. */
static void distil_bytes(const uint8_t *bytes, size_t size)
{
	struct cairn_binary *bin;
	struct cairn_btfgen d;
	struct cairn_btf *btf;
	/* clang-format off */
	struct cairn_btfgen_opts opts = {
		.size = sizeof(opts), .threads = 1, .vars = CAIRN_BTFGEN_VARS_ALL, .dialect = CAIRN_BTF_LOC_N};
	/* clang-format on */
	if (binary_open_mem(bytes, size, "input", &bin, NULL) < 0)
		return;
	if (cairn_btf_from_dwarf(bin, &opts, &d, NULL) == 0 && d.main.bytes) {
		assert_int_equal(
			cairn_btf_open_mem(d.main.bytes, d.main.size, "main", NULL, &btf, NULL), 0);
		cairn_btf_close(btf);
		cairn_btfgen_free(&d);
	}
	cairn_binary_close(bin);
}

static void damaged_input_gives_an_error_or_btf(void **state)
{
	for (unsigned int i = 0; i < DWARF_SEEDS; i++) {
		struct db *db = dwarf_seed(i);
		size_t size;
		uint8_t *bytes = db_finish(db, &size), *copy = malloc(size);
		assert_non_null(copy);
		for (size_t at = 0; at < size; at += 3) {
			memcpy(copy, bytes, size);
			copy[at] ^= (uint8_t)(1 << at % 8);
			distil_bytes(copy, size);
		}
		for (size_t cut = 0; cut < size; cut += 13) {
			uint8_t *shorter = malloc(cut + 1);
			assert_non_null(shorter);
			memcpy(shorter, bytes, cut);
			distil_bytes(shorter, cut);
			free(shorter);
		}
		free(copy);
		db_free(db);
	}
}

/*
 * Without memory for what tells whether a register is unchanged, less is known, and that is no
 * error.
 */
static void any_allocation_may_fail(void **state)
{
	for (unsigned int i = 0; i < DWARF_SEEDS; i++) {
		struct cairn_btfgen_opts opts = {.size = sizeof(opts),
						 .threads = 1,
						 .vars = CAIRN_BTFGEN_VARS_SPLIT,
						 .dialect = CAIRN_BTF_LOC_N};
		struct db *db = dwarf_seed(i);
		size_t size;
		uint8_t *bytes = db_finish(db, &size);
		unsigned int failed = 0;
		for (unsigned int n = 1;; n++) {
			struct cairn_binary *bin;
			struct cairn_btfgen d;
			assert_int_equal(binary_open_mem(bytes, size, "input", &bin, NULL), 0);
			alloc_fail_at(n);
			int rc = cairn_btf_from_dwarf(bin, &opts, &d, NULL);
			bool did = alloc_fail_end();
			failed += rc == -ENOMEM;
			if (rc == 0)
				cairn_btfgen_free(&d);
			else if (did)
				assert_int_equal(rc, -ENOMEM);
			cairn_binary_close(bin);
			if (!did)
				break;
		}
		assert_true(failed > 0);
		db_free(db);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_as_the_program_says),
		cmocka_unit_test(a_name_with_two_meanings_keeps_what_leads_to_it_apart),
		cmocka_unit_test(structs_inside_functions_refer_to_themselves),
		cmocka_unit_test(cxx_types_have_qualified_names_and_bases),
		cmocka_unit_test(copies_are_sites_of_a_function_that_main_does_not_have),
		cmocka_unit_test(any_number_of_threads_gives_the_same_bytes),
		cmocka_unit_test(what_the_base_has_is_not_written_again),
		cmocka_unit_test(what_the_base_only_declares_is_found),
		cmocka_unit_test(registers_and_memory_are_told_apart),
		cmocka_unit_test(a_null_pointer_is_no_address),
		cmocka_unit_test(constants_are_cut_to_their_type),
		cmocka_unit_test(steps_that_only_cut_are_dropped_and_others_refused),
		cmocka_unit_test(sixteen_bytes_are_two_registers),
		cmocka_unit_test(a_hundred_thousand_pointers_deep_is_no_matter),
		cmocka_unit_test(types_that_only_refer_to_themselves_end),
		cmocka_unit_test(the_last_of_gccs_tags_is_told_first),
		cmocka_unit_test(a_circle_of_tags_ends),
		cmocka_unit_test(damaged_input_gives_an_error_or_btf),
		cmocka_unit_test(any_allocation_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
