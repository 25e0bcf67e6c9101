/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One handle over three readers. Each fills a graph; those of DWARF and BTF only on demand.
 */
#include "source/source_impl.h"

#include <errno.h>
#include <stdlib.h>

#include <cairn/binary.h>

#include "base/err.h"
#include "base/opts.h"
#include "consumer/consumer.h"
#include "decl/decl.h"
#include "dwarf/dwarf.h"
#include "elf/elf.h"
#include "source/btf_abi.h"
#include "types/build.h"

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
	s->ops = &source_dwarf_ops;
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
	int rc = s ? decl_parse(text, size, name, abi, &s->decl, err) : -ENOMEM;

	return finish_parse(rc, s, abi, ret);
}

bool cairn_source_needs_preprocessor(const char *text, size_t size)
{
	return decl_needs_preprocessor(text, size);
}

enum cairn_lang cairn_lang_of_path(const char *path)
{
	return consumer_lang_of_path(path);
}

int cairn_source_parse_foreign(const char *text, size_t size, const char *name,
			       enum cairn_lang lang, const struct cairn_abi *abi,
			       struct cairn_source **ret, struct cairn_err *err)
{
	struct cairn_source *s = source_new(CAIRN_SOURCE_DECL, err);
	int rc = s ? consumer_parse(text, size, name, lang, abi, &s->foreign, err) : -ENOMEM;

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
	decl_free(s->decl);
	consumer_free(s->foreign);
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
		return consumer_types(s->foreign);
	if (s->provided)
		return s->provided;
	return s->decl ? decl_types(s->decl) : s->types;
}

const struct cairn_decl_problem *cairn_source_problem(const struct cairn_source *s, size_t i)
{
	return s->foreign ? consumer_problem(s->foreign, i) : NULL;
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
