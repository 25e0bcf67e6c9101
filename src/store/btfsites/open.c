/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The blobs
 *
 * A blob with sites is split: its ids and strings continue those of the types, and the types of a
 * module continue those of its kernel, or of a distilled base in .BTF.base. Nothing in a blob names
 * its base. A wrong one is seen when names do not begin where strings begin (cairn_btf_open()), and
 * when a site's function is no FUNC.
 *
 * A section of the binary belongs to its code. A file beside it may be another build's, and has no
 * build-id: there the sites have to be at the starts of instructions (function.c).
 */
#include <cairn/btf/sites.h>

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/opts.h"
#include "btf/btf.h"
#include "btfsites/btfsites.h"
#include "elf/elf.h"
#include "types/build.h"

#define BTF_SECTION    ".BTF"
#define BASE_SECTION   ".BTF.base"
#define INLINE_SECTION ".BTF.inline"
#define INLINE_SUFFIX  ".inline"
#define SYSFS          "/sys/kernel/btf"

/* ---- the chain ---- */

static const struct cairn_btf *last_of(const struct btf_sites *s)
{
	return s->n_chain ? s->chain[s->n_chain - 1] : NULL;
}

static int has_room(const struct btf_sites *s, struct cairn_err *err)
{
	return s->n_chain < BTFSITES_CHAIN_MAX
		       ? 0
		       : err_set(err, -ERANGE, "BTF of more than %d blobs that continue each other",
				 BTFSITES_CHAIN_MAX);
}

static int add_file(struct btf_sites *s, const char *path, const char *section,
		    struct cairn_err *err)
{
	struct cairn_btf_open_opts opts = {
		.size = sizeof(opts), .base = last_of(s), .section = section};
	int rc = has_room(s, err);
	if (rc >= 0)
		rc = cairn_btf_open(path, &opts, &s->chain[s->n_chain], err);
	if (rc >= 0)
		s->n_chain++;
	return rc;
}

static int add_section(struct btf_sites *s, const char *name, struct cairn_err *err)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = last_of(s)};
	const struct elf_section *section;
	int rc = has_room(s, err);
	if (rc >= 0)
		rc = elf_section(binary_main(s->sites.bin), name, &section, err);
	if (rc < 0)
		return rc;
	if (!section || !section->data)
		return err_set(err, -ENODATA, "%s has no %s", cairn_binary_path(s->sites.bin),
			       name);
	/* The section's name says it. */
	if (!strcmp(name, INLINE_SECTION))
		opts.dialect = CAIRN_BTF_LOC_N;
	rc = cairn_btf_open_mem(section->data, section->size, cairn_binary_path(s->sites.bin),
				&opts, &s->chain[s->n_chain], err);
	if (rc >= 0)
		s->n_chain++;
	return rc < 0 ? err_while(err, rc, "while reading %s", name) : 0;
}

/* Whether a binary has bytes of a section. */
static bool has_section(const struct cairn_binary *bin, const char *name)
{
	const struct elf *e = binary_main(bin);
	for (size_t i = 0; i < elf_n_sections(e); i++)
		if (!strcmp(elf_section_at(e, i)->name, name))
			return elf_section_at(e, i)->type != SHT_NOBITS;
	return false;
}

/* ---- bases ---- */

/* A module's kernel, unless it has a distilled base. */
static int add_kernel(struct btf_sites *s, const struct cairn_btf_sites_opts *o,
		      struct cairn_err *err)
{
	char path[4096];
	if (!s->kernel || !s->relocatable)
		return 0;
	int n = snprintf(path, sizeof(path), "%s/vmlinux", o->sysfs ? o->sysfs : SYSFS);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(err, -EINVAL, "%s: the path is too long", o->sysfs);
	int rc = add_file(s, path, NULL, err);
	return rc < 0 ? err_while(err, rc, "while reading the base of a module's BTF") : 0;
}

static int add_bases(struct btf_sites *s, const struct cairn_btf_sites_opts *o,
		     struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < o->n_bases && rc >= 0; i++)
		rc = add_file(s, o->bases[i], NULL, err);
	if (rc < 0 || o->n_bases)
		return rc;
	return has_section(s->sites.bin, BASE_SECTION) ? add_section(s, BASE_SECTION, err)
						       : add_kernel(s, o, err);
}

/* ---- the three places ---- */

static bool has_file(const char *path)
{
	return path && !access(path, F_OK);
}

static int set_path(struct btf_sites *s, const char *path, bool is_embedded, struct cairn_err *err)
{
	s->path = path ? strdup(path) : NULL;
	s->is_embedded = is_embedded;
	return s->path ? 0 : err_nomem(err, "a path");
}

static int open_embedded(struct btf_sites *s, struct cairn_err *err)
{
	int rc = set_path(s, cairn_binary_path(s->sites.bin), true, err);
	if (rc >= 0)
		rc = add_section(s, BTF_SECTION, err);
	return rc < 0 ? rc : add_section(s, INLINE_SECTION, err);
}

/* @file has the types, @file.inline or a section of @file the sites. */
static int open_pair(struct btf_sites *s, const char *file, struct cairn_err *err)
{
	char *beside = arena_printf(&s->arena, "%s" INLINE_SUFFIX, file);
	bool has_beside = has_file(beside);
	int rc = set_path(s, has_beside ? beside : file, false, err);
	if (rc >= 0)
		rc = add_file(s, file, NULL, err);
	if (rc < 0)
		return rc;
	rc = add_file(s, s->path, has_beside ? NULL : INLINE_SECTION, err);
	if (rc == -ENODATA || (rc == -EBADMSG && !has_beside))
		return err_set(err, -ENODATA,
			       "%s has no sites: there is no %s" INLINE_SUFFIX
			       ", and no " INLINE_SECTION " in it",
			       file, file);
	return rc;
}

/* The types are a section of the binary, the sites a file beside it, or a section of that. */
static int open_half_embedded(struct btf_sites *s, const char *beside, struct cairn_err *err)
{
	int rc = set_path(s, beside, false, err);
	if (rc >= 0)
		rc = add_section(s, BTF_SECTION, err);
	if (rc < 0)
		return rc;
	rc = add_file(s, beside, INLINE_SECTION, err);
	return rc == -ENODATA ? add_file(s, beside, NULL, err) : rc;
}

/* The module's file with the sites of a kernel that has the types. */
static bool is_linked(const struct btf_sites *s)
{
	return has_section(s->sites.bin, LINK_SECTION) && has_section(s->sites.bin, BTF_SECTION) &&
	       !has_section(s->sites.bin, INLINE_SECTION);
}

/* FILE.inline stands for FILE. */
static int open_named(struct btf_sites *s, const char *file, struct cairn_err *err)
{
	size_t n = strlen(file), end = sizeof(INLINE_SUFFIX) - 1;
	char *beside = arena_printf(&s->arena, "%s" INLINE_SUFFIX, file);
	if (is_linked(s) && !has_file(beside))
		return open_half_embedded(s, file, err);
	if (n <= end || strcmp(file + n - end, INLINE_SUFFIX))
		return open_pair(s, file, err);
	char *types = arena_strndup(&s->arena, file, n - end);
	return types ? open_pair(s, types, err) : err_nomem(err, "a path");
}

static int say_nothing(const struct btf_sites *s, struct cairn_err *err)
{
	const char *path = cairn_binary_path(s->sites.bin);
	struct btf_link link;
	int rc = btfsites_link_read(s, &link, err);
	if (rc < 0)
		return rc;
	if (rc)
		return err_set(err, -ENOLINK,
			       "%s has its sites in module %s: " LINK_SECTION " names it. Name the "
			       "module's file, which has them in " INLINE_SECTION,
			       path, link.module);
	return err_set(err, -ENODATA,
		       "%s has no BTF with sites: no " INLINE_SECTION " in it, and neither "
		       "%s" INLINE_SUFFIX " nor %s.btf" INLINE_SUFFIX " beside it",
		       path, path, path);
}

static int open_found(struct btf_sites *s, struct cairn_err *err)
{
	const char *path = cairn_binary_path(s->sites.bin);
	char *beside = arena_printf(&s->arena, "%s" INLINE_SUFFIX, path);
	char *types = arena_printf(&s->arena, "%s.btf", path);
	char *sites = arena_printf(&s->arena, "%s.btf" INLINE_SUFFIX, path);
	if (!beside || !types || !sites)
		return err_nomem(err, "a path");
	bool has_types = has_section(s->sites.bin, BTF_SECTION);
	if (has_types && has_section(s->sites.bin, INLINE_SECTION))
		return open_embedded(s, err);
	if (has_types && has_file(beside))
		return open_half_embedded(s, beside, err);
	return has_file(types) && has_file(sites) ? open_pair(s, types, err) : say_nothing(s, err);
}

/* ---- what the blob must have ---- */

static int check_dialect(const struct btf_sites *s, struct cairn_err *err)
{
	if (cairn_btf_dialect(s->inlined) == CAIRN_BTF_LOC_N)
		return 0;
	if (cairn_btf_dialect(s->inlined) == CAIRN_BTF_NO_LOC)
		return err_set(err, -ENODATA, "%s has no sites", s->path);
	return err_set(err, -EOPNOTSUPP,
		       "%s has sites in the v1 dialect, which does not record the section of a "
		       "site. Convert it: cairn btf convert --dialect n",
		       s->path);
}

/* The section of code that a LOCSEC is about: ".text", or "inline.text". */
static const struct elf_section *section_named(const struct elf *e, const char *name)
{
	const char *label = strncmp(name, "inline.", 7) ? name : name + 6;
	for (size_t i = 0; i < elf_n_sections(e); i++) {
		const struct elf_section *section = elf_section_at(e, i);
		if (section->flags & SHF_EXECINSTR && !strcmp(section->name, label))
			return section;
	}
	return NULL;
}

static int add_locsec(struct btf_sites *s, const struct cairn_btf_type *t, struct cairn_err *err)
{
	const struct elf_section *section = section_named(binary_main(s->sites.bin), t->name);
	if (!section)
		return err_set(err, s->is_embedded ? -EBADMSG : -ESTALE,
			       "%s has sites in %s, which is no section of code of %s: it is "
			       "damaged, or another build's",
			       s->path, t->name[0] ? t->name : "a section without a name",
			       cairn_binary_path(s->sites.bin));
	struct loc_section one = {.words = t->words,
				  .n = t->vlen,
				  .start = section->addr.v,
				  .size = section->size,
				  .name = t->name};
	return VEC_ADD(&s->sections, one) ? 0 : err_nomem(err, "sections with sites");
}

static int see_sections(struct btf_sites *s, struct cairn_err *err)
{
	struct cairn_btf_type t;
	int rc = 0;
	for (uint32_t id = cairn_btf_start_id(s->inlined);
	     id < cairn_btf_end_id(s->inlined) && rc >= 0; id++)
		if (btf_kind_at(s->inlined, id) == CAIRN_BTF_LOCSEC &&
		    cairn_btf_type(s->inlined, id, &t))
			rc = add_locsec(s, &t, err);
	if (rc >= 0 && !s->sections.n)
		rc = err_set(err, -ENODATA, "%s has no sites", s->path);
	return rc;
}

static int see_contents(struct btf_sites *s, struct cairn_err *err)
{
	s->inlined = s->chain[s->n_chain - 1];
	s->main = s->chain[s->n_chain - 2];
	int rc = check_dialect(s, err);
	if (rc >= 0 && !s->is_embedded)
		rc = btfsites_link_check(s, err);
	if (rc >= 0)
		rc = see_sections(s, err);
	if (rc < 0)
		return rc;
	s->sites.graph = types_new();
	return s->sites.graph
		       ? btf_types_new(s->inlined, BTFSITES_WORD, s->sites.graph, &s->reader, err)
		       : err_nomem(err, "types");
}

int cairn_btf_sites_open(const struct cairn_binary *bin, const struct cairn_btf_sites_opts *opts,
			 struct cairn_sites **ret, struct cairn_err *err)
{
	struct cairn_btf_sites_opts o;
	int rc = opts_take(&o, sizeof(o), opts, err);
	if (rc >= 0)
		rc = elf_need_x86_64(binary_main(bin), "sites of functions are known", err);
	if (rc < 0)
		return rc;
	struct btf_sites *s = btfsites_new(bin);
	if (!s)
		return err_nomem(err, "the sites of a binary");
	s->is_running = has_section(bin, ELF_RUNNING_SECTION);
	rc = add_bases(s, &o, err);
	if (rc >= 0)
		rc = o.file ? open_named(s, o.file, err) : open_found(s, err);
	if (rc >= 0)
		rc = see_contents(s, err);
	/* The functions that are asked for later may happen to fit. */
	if (rc >= 0 && s->is_running)
		rc = btfsites_check_sample(s, err);
	rc = btf_verdict(last_of(s), rc, NULL, err);
	if (rc < 0) {
		btfsites_free(s);
		return rc;
	}
	*ret = &s->sites;
	return 0;
}
