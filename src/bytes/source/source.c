/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One handle over three readers. Each fills a graph; those of DWARF and BTF only on demand.
 */
#include <cairn/source.h>

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/binary.h>
#include <cairn/decl.h>

#include "base/err.h"
#include "base/opts.h"
#include "base/vec.h"
#include "btf/btf.h"
#include "btf/types.h"
#include "dwarf/dwarf.h"
#include "dwarf/types.h"
#include "elf/elf.h"
#include "source/btf_abi.h"
#include "source/names.h"
#include "source/provider.h"
#include "source/spelling.h"
#include "types/build.h"

struct cairn_source {
	enum cairn_source_kind kind;
	const struct cairn_abi *abi;
	bool big_endian;
	struct cairn_types *types; /* of a declaration: owned by it */
	struct cairn_decl *decl;
	struct cairn_consumer *foreign;
	struct cairn_btf *btf;
	struct btf_types *btf_reader;
	struct cairn_binary *bin; /* NULL: the caller's, or none */
	struct dwarf *dw;
	struct dw_types *reader;
	const struct source_ops *ops; /* for DWARF, and the provider that answers */
	void *provider;
	const struct cairn_types *provided; /* the provider's graph; NULL: types */
	unsigned int threads;
	bool with_typedefs;
	/* All definitions of DWARF; typedefs of unnamed types. */
	struct listed {
		bool is_read;
		VEC(uint32_t) ids;
		VEC(char *) names; /* of the types of functions: with their scopes */
		struct names by_name;
	} defs, typedefs, locals;
	struct names by_name; /* of BTF and of declarations: places are ids */
};

/* ---- opening ---- */

static const struct source_ops dwarf_ops;

static struct cairn_source *source_new(enum cairn_source_kind kind, struct cairn_err *err)
{
	struct cairn_source *s = calloc(1, sizeof(*s));

	if (s)
		s->kind = kind;
	else
		err_nomem(err, "a source of types");
	return s;
}

static int open_btf(struct cairn_source *s, const char *path, const struct cairn_btf *base,
		    struct cairn_err *err)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = base};
	int rc = cairn_btf_open(path, &opts, &s->btf, err);

	if (rc < 0)
		return rc;
	s->kind = CAIRN_SOURCE_BTF;
	s->big_endian = cairn_btf_is_big_endian(s->btf);
	s->abi = abi_of_elf_file(path);
	s->types = types_new();
	if (!s->types)
		return err_nomem(err, "types");
	return btf_types_new(s->btf,
			     s->abi ? s->abi->scalars[CAIRN_C_PTR].size : btf_pointer_size(s->btf),
			     s->types, &s->btf_reader, err);
}

/* Files of other machines do not come this far. */
static const struct cairn_abi *abi_of_elf(uint16_t machine)
{
	const struct cairn_abi *abi = cairn_abi_of_elf(machine, true, false, 0);

	return abi ? abi : cairn_abi_find("x86-64");
}

static int open_dwarf(struct cairn_source *s, const struct cairn_binary *bin,
		      const struct cairn_abi *abi, struct cairn_err *err)
{
	int rc = dwarf_open(bin, s->threads, &s->dw, err);

	if (rc < 0)
		return rc;
	s->kind = CAIRN_SOURCE_DWARF;
	s->abi = abi ? abi : abi_of_elf(elf_machine(binary_main(bin)));
	s->big_endian = s->abi->big_endian;
	s->ops = &dwarf_ops;
	s->provider = s;
	s->types = types_new();
	if (!s->types)
		return err_nomem(err, "types");
	rc = dw_types_new(s->dw, s->types, &s->reader, err);
	if (!rc)
		dw_types_set_pointer_size(s->reader, s->abi->scalars[CAIRN_C_PTR].size);
	return rc;
}

int source_provided(const struct source_ops *ops, void *provider, const struct cairn_types *types,
		    const struct cairn_abi *abi, struct cairn_source **ret, struct cairn_err *err)
{
	struct cairn_source *s = source_new(CAIRN_SOURCE_DWARF, err);

	if (!s) {
		ops->close(provider);
		return -ENOMEM;
	}
	s->ops = ops;
	s->provider = provider;
	s->provided = types;
	s->abi = abi;
	*ret = s;
	return 0;
}

/*
 * A file that is no ELF file is BTF or nothing; so is one of a machine whose DWARF is not
 * supported.
 */
static int open_file(struct cairn_source *s, const char *path, const struct cairn_source_opts *opts,
		     struct cairn_err *err)
{
	struct cairn_err why = {0}, btf_why = {0};
	const struct cairn_binary *bin = opts->btf || opts->base ? NULL : opts->binary;

	if (!opts->btf && !opts->base && !bin && !binary_open_for_types(path, &s->bin, &why))
		bin = s->bin;
	if (bin && cairn_binary_has_dwarf(bin))
		return open_dwarf(s, bin, opts->abi, err);
	int btf_rc = open_btf(s, path, opts->base, &btf_why);
	if (btf_rc != -ENODATA || !bin) {
		if (btf_rc && err)
			*err = btf_why;
		return btf_rc;
	}
	return err_lines(err, -ENODATA, cairn_binary_search_log(bin),
			 "%s has neither DWARF nor BTF", path);
}

int cairn_source_open(const char *path, const struct cairn_source_opts *opts,
		      struct cairn_source **ret, struct cairn_err *err)
{
	struct cairn_source_opts o;
	struct cairn_source *s;
	int rc = opts_take(&o, sizeof(o), opts, err);

	if (rc < 0)
		return rc;
	s = source_new(CAIRN_SOURCE_BTF, err);
	if (!s)
		return -ENOMEM;
	s->threads = o.threads;
	s->with_typedefs = o.typedefs;
	rc = open_file(s, path, &o, err);
	if (rc < 0) {
		cairn_source_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

/* For parsed declarations, with @rc: hands @s out, or closes it. */
static int finish_parse(int rc, struct cairn_source *s, const struct cairn_abi *abi,
			struct cairn_source **ret)
{
	if (rc < 0) {
		cairn_source_close(s);
		return rc;
	}
	s->abi = abi;
	s->big_endian = abi->big_endian;
	*ret = s;
	return 0;
}

int cairn_source_parse(const char *text, size_t size, const char *name, const struct cairn_abi *abi,
		       struct cairn_source **ret, struct cairn_err *err)
{
	struct cairn_source *s = source_new(CAIRN_SOURCE_DECL, err);
	int rc = s ? cairn_decl_parse(text, size, name, abi, &s->decl, err) : -ENOMEM;

	return finish_parse(rc, s, abi, ret);
}

int cairn_source_parse_foreign(const char *text, size_t size, const char *name,
			       enum cairn_lang lang, const struct cairn_abi *abi,
			       struct cairn_source **ret, struct cairn_err *err)
{
	struct cairn_source *s = source_new(CAIRN_SOURCE_DECL, err);
	int rc = s ? cairn_consumer_parse(text, size, name, lang, abi, &s->foreign, err) : -ENOMEM;

	return finish_parse(rc, s, abi, ret);
}

const char *cairn_source_shortened(const struct cairn_source *s)
{
	if (s->btf)
		return cairn_btf_shortened(s->btf);
	return s->ops ? s->ops->shortened(s->provider) : NULL;
}

void cairn_source_close(struct cairn_source *s)
{
	if (!s)
		return;
	if (s->ops)
		s->ops->close(s->provider);
	dw_types_free(s->reader);
	btf_types_free(s->btf_reader);
	types_free(s->types);
	cairn_decl_free(s->decl);
	cairn_consumer_free(s->foreign);
	cairn_btf_close(s->btf);
	dwarf_close(s->dw);
	cairn_binary_close(s->bin);
	VEC_FREE(&s->defs.ids);
	VEC_FREE(&s->typedefs.ids);
	VEC_FREE(&s->locals.ids);
	for (size_t i = 0; i < s->locals.names.n; i++)
		free(s->locals.names.p[i]);
	VEC_FREE(&s->locals.names);
	names_fini(&s->defs.by_name);
	names_fini(&s->typedefs.by_name);
	names_fini(&s->locals.by_name);
	names_fini(&s->by_name);
	free(s);
}

enum cairn_source_kind cairn_source_kind(const struct cairn_source *s)
{
	return s->kind;
}

const struct cairn_types *cairn_source_types(const struct cairn_source *s)
{
	if (s->foreign)
		return cairn_consumer_types(s->foreign);
	if (s->provided)
		return s->provided;
	return s->decl ? cairn_decl_types(s->decl) : s->types;
}

const struct cairn_consumer *cairn_source_foreign(const struct cairn_source *s)
{
	return s->foreign;
}

const struct cairn_abi *cairn_source_abi(const struct cairn_source *s)
{
	return s->abi;
}

bool cairn_source_is_big_endian(const struct cairn_source *s)
{
	return s->big_endian;
}

size_t cairn_source_missing(const struct cairn_source *s, const char **ret)
{
	*ret = "";
	return s->dw ? dwarf_missing(s->dw, ret) : 0;
}

/* ---- selecting ---- */

struct query {
	const char *name; /* NULL: any that has one */
	bool is_glob;
	bool any_kind;
	bool values; /* numbers, pointers and arrays: types without members, but with a value */
	bool tail;   /* the name may lack scopes: "Job" for "ns::Job" */
	enum cairn_type_kind kind;
};

static struct query wish_of(const char *pattern)
{
	static const struct {
		const char *word;
		enum cairn_type_kind kind;
	} words[] = {{"struct ", CAIRN_T_STRUCT},
		     {"class ", CAIRN_T_STRUCT},
		     {"union ", CAIRN_T_UNION},
		     {"enum ", CAIRN_T_ENUM}};
	struct query w = {.name = pattern, .any_kind = true};

	for (size_t i = 0; pattern && i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].word);

		if (strncmp(pattern, words[i].word, n))
			continue;
		w = (struct query){.name = pattern + n, .kind = words[i].kind};
		break;
	}
	w.is_glob = w.name && strpbrk(w.name, "*?[");
	return w;
}

/* "Job" is the tail of "ns::Job". */
static bool is_tail(const char *name, const char *tail)
{
	size_t n = strlen(name), m = strlen(tail);

	return n > m + 2 && !strcmp(name + n - m, tail) && name[n - m - 1] == ':' &&
	       name[n - m - 2] == ':';
}

static bool is_named(const struct query *w, const char *name)
{
	if (w->is_glob)
		return !fnmatch(w->name, name, 0);
	return w->tail ? is_tail(name, w->name) : !strcmp(name, w->name);
}

/* The one name that is wanted, or its end; NULL: there are more. Numbers have several spellings. */
static const char *one_name(const struct query *w)
{
	return w->is_glob || w->values ? NULL : w->name;
}

static bool has_inside(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION ||
	       t->kind == CAIRN_T_ENUM;
}

/*
 * "typedef struct { ... } name;" is how some have their name; by its own any typedef of a struct is
 * wanted.
 */
static bool is_typedef(const struct query *w, const struct cairn_types *types,
		       const struct cairn_type *t)
{
	if (t->kind != CAIRN_T_TYPEDEF || !w->any_kind)
		return false;
	if (w->name && !w->is_glob)
		t = cairn_types_get(types, cairn_types_resolve(types, t->ref));
	else
		t = cairn_types_get(types, t->ref);
	/* "typedef struct a a;" adds nothing. */
	return has_inside(t) && (!t->name || (w->name && !w->is_glob && strcmp(t->name, w->name)));
}

/* A typedef of anything that has bytes, or a number by any of its spellings. */
static bool is_value(const struct query *w, const struct cairn_types *types,
		     const struct cairn_type *t)
{
	if (t->kind == CAIRN_T_TYPEDEF)
		return cairn_types_size(types, t->ref) && is_named(w, t->name);
	return (t->kind == CAIRN_T_INT || t->kind == CAIRN_T_FLOAT) && t->name &&
	       spelled_alike(w->name, t->name);
}

static bool is_defined(const struct cairn_type *t)
{
	return has_inside(t) && !t->declaration && t->name;
}

static bool is_wanted(const struct query *w, const struct cairn_types *types,
		      const struct cairn_type *t, bool with_typedefs)
{
	enum cairn_type_kind kind = t->kind == CAIRN_T_CLASS ? CAIRN_T_STRUCT : t->kind;

	if (w->values)
		return is_value(w, types, t);
	if (!is_defined(t) && !((w->name || with_typedefs) && is_typedef(w, types, t)))
		return false;
	if (!w->any_kind && kind != w->kind)
		return false;
	if (!w->name)
		return kind != CAIRN_T_ENUM;
	return is_named(w, t->name);
}

/* The target of a typedef may be declared only. */
static int append(const struct cairn_types *types, struct cairn_source_list *list, uint32_t id,
		  struct cairn_err *err)
{
	if (cairn_types_get(types, cairn_types_resolve(types, id))->declaration)
		return 0;
	if (list->n == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 16;
		uint32_t *grown = realloc(list->ids, cap * sizeof(*grown));

		if (!grown)
			return err_nomem(err, "the list of types");
		list->ids = grown;
		list->cap = cap;
	}
	list->ids[list->n++] = id;
	return 0;
}

/* ---- of DWARF ---- */

/* A reader's list of DIEs becomes ids. */
struct listing {
	struct dw_types *reader;
	source_visitor *visit;
	void *ctx;
};

static int list_one(void *ctx, dw_off off, struct cairn_err *err)
{
	const struct listing *l = ctx;
	uint32_t id;
	int rc = dwarf_type(l->reader, off, &id, err);

	return rc < 0 && rc != -EBADMSG ? rc : l->visit(l->ctx, id, err);
}

static int list_dwarf(void *provider, bool typedefs, source_visitor *visit, void *ctx,
		      struct cairn_err *err)
{
	const struct cairn_source *s = provider;
	struct listing l = {s->reader, visit, ctx};

	return typedefs ? dwarf_type_typedefs(s->reader, list_one, &l, err)
			: dwarf_type_definitions(s->reader, list_one, &l, err);
}

struct locals {
	struct dw_types *reader;
	source_local_visitor *visit;
	void *ctx;
};

static int list_local(void *ctx, dw_off off, const char *name, struct cairn_err *err)
{
	const struct locals *l = ctx;
	uint32_t id;
	int rc = dwarf_type(l->reader, off, &id, err);

	return rc < 0 && rc != -EBADMSG ? rc : l->visit(l->ctx, id, name, err);
}

static int list_locals_of_dwarf(void *provider, source_local_visitor *visit, void *ctx,
				struct cairn_err *err)
{
	const struct cairn_source *s = provider;
	struct locals l = {s->reader, visit, ctx};

	return dwarf_type_locals(s->reader, NULL, list_local, &l, err);
}

static int complete_dwarf(void *provider, uint32_t id, struct cairn_err *err)
{
	return dwarf_type_complete(((const struct cairn_source *)provider)->reader, id, err);
}

static const char *shortened_dwarf(void *provider)
{
	return cairn_binary_shortened(dwarf_binary(((const struct cairn_source *)provider)->dw));
}

/* The source has it all. */
static void close_dwarf(void *provider)
{
}

static const struct source_ops dwarf_ops = {.list = list_dwarf,
					    .list_locals = list_locals_of_dwarf,
					    .complete = complete_dwarf,
					    .shortened = shortened_dwarf,
					    .close = close_dwarf};

/* ---- of a provider ---- */

struct named_list {
	const struct cairn_types *types;
	const struct listed *list;
};

static const char *name_listed(const void *ctx, size_t place)
{
	const struct named_list *l = ctx;

	return cairn_types_get(l->types, l->list->ids.p[place - 1])->name;
}

static int add_listed(void *ctx, uint32_t id, struct cairn_err *err)
{
	struct listed *to = ctx;

	return VEC_ADD(&to->ids, id) ? 0 : err_nomem(err, "the list of types");
}

/* A provider lists once. */
static int list(struct cairn_source *s, bool typedefs, struct listed *to, struct cairn_err *err)
{
	int rc = to->is_read ? 0 : s->ops->list(s->provider, typedefs, add_listed, to, err);

	to->is_read = rc >= 0;
	return rc;
}

static int select_listed(struct cairn_source *s, struct listed *from, const struct query *w,
			 struct cairn_source_list *found, struct cairn_err *err)
{
	const struct cairn_types *types = cairn_source_types(s);
	struct named_list named = {types, from};
	struct names_walk walk = {0};
	int rc = names_find(&from->by_name, one_name(w), from->ids.n, name_listed, &named, &walk,
			    err);

	while (rc >= 0 && names_next(&walk)) {
		uint32_t id = from->ids.p[walk.at - 1];

		if (!is_wanted(w, types, cairn_types_get(types, id), s->with_typedefs))
			continue;
		rc = s->ops->complete(s->provider, id, err);
		if (rc >= 0)
			rc = append(types, found, id, err);
	}
	return rc;
}

/* ---- types of functions ---- */

static int add_local(void *ctx, uint32_t id, const char *name, struct cairn_err *err)
{
	struct listed *to = ctx;
	char *copy = strdup(name);

	if (copy && VEC_ADD(&to->names, copy))
		return VEC_ADD(&to->ids, id) ? 0 : err_nomem(err, "the list of types");
	free(copy);
	return err_nomem(err, "the list of types");
}

static const char *name_local(const void *ctx, size_t place)
{
	return ((const struct listed *)ctx)->names.p[place - 1];
}

static bool is_wanted_local(const struct query *w, const struct cairn_types *types,
			    const struct cairn_type *t, const char *name)
{
	enum cairn_type_kind kind = t->kind == CAIRN_T_CLASS ? CAIRN_T_STRUCT : t->kind;

	if (w->is_glob ? fnmatch(w->name, name, 0) != 0
		       : strcmp(w->name, name) != 0 && !is_tail(name, w->name))
		return false;
	if (kind != CAIRN_T_TYPEDEF)
		return is_defined(t) && (w->any_kind || kind == w->kind);
	return w->any_kind &&
	       (w->values ? cairn_types_size(types, t->ref) != 0
			  : has_inside(cairn_types_get(types, cairn_types_resolve(types, t->ref))));
}

static int select_locals(struct cairn_source *s, const struct query *w,
			 struct cairn_source_list *found, struct cairn_err *err)
{
	const struct cairn_types *types = cairn_source_types(s);
	int rc = s->locals.is_read ? 0
				   : s->ops->list_locals(s->provider, add_local, &s->locals, err);

	struct names_walk walk = {0};

	s->locals.is_read = rc >= 0;
	if (rc >= 0)
		rc = names_find(&s->locals.by_name, w->is_glob ? NULL : w->name, s->locals.ids.n,
				name_local, &s->locals, &walk, err);
	while (rc >= 0 && names_next(&walk)) {
		uint32_t id = s->locals.ids.p[walk.at - 1];

		if (!is_wanted_local(w, types, cairn_types_get(types, id),
				     s->locals.names.p[walk.at - 1]))
			continue;
		rc = s->ops->complete(s->provider, id, err);
		if (rc >= 0)
			rc = append(types, found, id, err);
	}
	return rc;
}

/* ---- of DWARF ---- */

static bool may_be_typedef(const struct cairn_source *s, const struct query *w)
{
	return w->any_kind && (w->name || s->with_typedefs);
}

/* Typedefs cost a second pass over the binary, and are looked for when the name may be one. */
static int select_provided(struct cairn_source *s, const struct query *w,
			   struct cairn_source_list *found, struct cairn_err *err)
{
	size_t before = found->n;
	int rc = w->values ? 0 : list(s, false, &s->defs, err);

	if (rc >= 0 && !w->values)
		rc = select_listed(s, &s->defs, w, found, err);
	if (rc < 0 || !may_be_typedef(s, w) || (w->name && !w->is_glob && found->n > before))
		return rc;
	rc = list(s, true, &s->typedefs, err);
	return rc < 0 ? rc : select_listed(s, &s->typedefs, w, found, err);
}

/* ---- of BTF and declarations ---- */

/* By its kind alone: could it be wanted? Most records are not. */
static inline bool has_wanted_kind(uint32_t kind)
{
	enum {
		WANTED = 1 << CAIRN_BTF_STRUCT | 1 << CAIRN_BTF_UNION | 1 << CAIRN_BTF_ENUM |
			 1 << CAIRN_BTF_ENUM64 | 1 << CAIRN_BTF_TYPEDEF | 1 << CAIRN_BTF_INT |
			 1 << CAIRN_BTF_FLOAT
	};
	return kind < 32 && WANTED >> kind & 1;
}

/* By its record alone: could it be wanted? */
static bool may_be_wanted(const struct query *w, const struct cairn_btf_type *t)
{
	switch (t->kind) {
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_UNION:
		break;
	case CAIRN_BTF_ENUM:
	case CAIRN_BTF_ENUM64:
	case CAIRN_BTF_TYPEDEF:
		if (w->name)
			break;
		return false;
	case CAIRN_BTF_INT:
	case CAIRN_BTF_FLOAT:
		return w->values && spelled_alike(w->name, t->name);
	default:
		return false;
	}
	if (!w->name)
		return t->name[0];
	return is_named(w, t->name);
}

static const char *name_in_btf(const void *ctx, size_t place)
{
	struct cairn_btf_type t;

	return cairn_btf_type(ctx, (uint32_t)place, &t) ? t.name : NULL;
}

static int select_btf(struct cairn_source *s, const struct query *w, struct cairn_source_list *list,
		      struct cairn_err *err)
{
	struct cairn_btf_type t;
	struct names_walk walk = {0};
	int rc = names_find(&s->by_name, one_name(w), cairn_btf_end_id(s->btf) - 1, name_in_btf,
			    s->btf, &walk, err);

	while (rc >= 0 && names_next(&walk)) {
		uint32_t id = (uint32_t)walk.at;

		if (!has_wanted_kind(btf_kind_at(s->btf, id)) || !cairn_btf_type(s->btf, id, &t) ||
		    !may_be_wanted(w, &t))
			continue;
		rc = btf_types_read(s->btf_reader, id, err);
		if (rc >= 0 && is_wanted(w, s->types, cairn_types_get(s->types, id), false))
			rc = append(s->types, list, id, err);
	}
	return rc;
}

static const char *name_in_graph(const void *ctx, size_t place)
{
	return cairn_types_get(ctx, (uint32_t)place)->name;
}

/* The graph is there, whole. */
static int select_decl(struct cairn_source *s, const struct query *w,
		       struct cairn_source_list *list, struct cairn_err *err)
{
	const struct cairn_types *types = cairn_source_types(s);
	struct names_walk walk = {0};
	int rc = names_find(&s->by_name, one_name(w), cairn_types_n_types(types) - 1, name_in_graph,
			    types, &walk, err);

	while (rc >= 0 && names_next(&walk))
		if (is_wanted(w, types, cairn_types_get(types, (uint32_t)walk.at), true))
			rc = append(types, list, (uint32_t)walk.at, err);
	return rc;
}

static int select_by(struct cairn_source *s, const struct query *w, struct cairn_source_list *list,
		     struct cairn_err *err)
{
	switch (s->kind) {
	case CAIRN_SOURCE_DWARF:
		return select_provided(s, w, list, err);
	case CAIRN_SOURCE_BTF:
		return select_btf(s, w, list, err);
	default:
		return select_decl(s, w, list, err);
	}
}

int cairn_source_read_all(struct cairn_source *s, struct cairn_err *err)
{
	return s->btf_reader ? btf_types_read_all(s->btf_reader, err) : 0;
}

/* Types without their scopes, and those that functions have: for a name that is nothing else. */
static int select_far(struct cairn_source *s, const struct query *w, struct cairn_source_list *list,
		      struct cairn_err *err)
{
	struct query tail = *w;
	size_t before = list->n;
	int rc = 0;

	tail.tail = true;
	if (!w->is_glob)
		rc = select_by(s, &tail, list, err);
	return rc < 0 || (!w->is_glob && list->n > before) || !s->ops
		       ? rc
		       : select_locals(s, w, list, err);
}

/* Exactly that name; as a value, too, with @values; else the possible meanings. */
static int64_t select_name(struct cairn_source *s, const char *pattern, bool values,
			   struct cairn_source_list *list, struct cairn_err *err)
{
	struct query w = wish_of(pattern);
	size_t before = list->n;
	int rc = select_by(s, &w, list, err);

	if (rc >= 0 && list->n == before && values && w.any_kind) {
		w.values = true;
		rc = select_by(s, &w, list, err);
	}
	bool is_open = w.is_glob ? strstr(pattern, "::") != NULL : pattern && list->n == before;
	if (rc >= 0 && is_open) {
		w.values = false;
		rc = select_far(s, &w, list, err);
	}
	if (rc >= 0 && list->n == before && values && w.any_kind) {
		w.values = true;
		rc = select_far(s, &w, list, err);
	}
	return rc < 0 ? rc : (int64_t)(list->n - before);
}

int64_t cairn_source_select(struct cairn_source *s, const char *pattern,
			    struct cairn_source_list *list, struct cairn_err *err)
{
	return select_name(s, pattern, false, list, err);
}

int64_t cairn_source_select_value(struct cairn_source *s, const char *name,
				  struct cairn_source_list *list, struct cairn_err *err)
{
	return select_name(s, name, name && !strpbrk(name, "*?["), list, err);
}
