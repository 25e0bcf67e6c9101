/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making a sidecar
 *
 *	units ──► gather (parallel) ──► join (numbers, order of address) ──► encode ──► an ELF file
 *
 * Only gathering is worth threads: it reads all DIEs and line programs, the rest works on a
 * hundredth of that.
 */
#include <cairn/btf/from_dwarf.h>
#include <cairn/sidecar.h>

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/err.h"
#include "base/opts.h"
#include "base/pool.h"
#include "cfi/table.h"
#include "btfgen/meanings.h"
#include "dwarf/index.h"
#include "sidecar/binding.h"
#include "sidecar/code_map.h"
#include "sidecar/elf_out.h"
#include "sidecar/encode.h"
#include "sidecar/format.h"
#include "sidecar/kernel_btf.h"
#include "sidecar/site_table.h"
#include "sidecar/reduced.h"
#include "sites/provider.h"
#include "sidecar_maker.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* Higher ones save a tenth, and take ten times as long. */
enum { COMPRESSION_LEVEL = 3 };

/* ---- gathering ---- */

struct gathering {
	const struct dwarf *dw;
	const struct elf *debug;
	const struct elf_section *info; /* NULL: none, or not the same as in the file */
	struct gatherer *workers;
	struct unit_facts *units;
	bool leaves_out; /* damaged parts are left out; otherwise they are an error */
	/* Those that were left out, and the first of them. */
	pthread_mutex_t lock;
	uint32_t n_left_out;
	size_t first_left_out;
	struct cairn_err why;
};

/* A kernel's DIEs are 160 MB, and each unit is read once. */
static void release_unit(const struct gathering *g, size_t item)
{
	uint64_t from = dw_unit_off(dwarf_unit(g->dw, item)), to = g->info ? g->info->size : 0;
	if (item + 1 < dwarf_n_units(g->dw) && dw_unit_off(dwarf_unit(g->dw, item + 1)) < to)
		to = dw_unit_off(dwarf_unit(g->dw, item + 1));
	if (from < to)
		elf_release(g->debug, g->info->data + from, to - from);
}

/* Nothing of it stays, so that its addresses are known by their symbols. */
static int leave_out(struct gathering *g, size_t item, const struct cairn_err *why)
{
	unit_facts_fini(&g->units[item]);
	g->units[item] = (struct unit_facts){0};
	pthread_mutex_lock(&g->lock);
	if (!g->n_left_out++ || item < g->first_left_out) {
		g->first_left_out = item;
		g->why = *why;
	}
	pthread_mutex_unlock(&g->lock);
	return VEC_ADD(&g->units[item].files, NULL) ? 0 : -ENOMEM;
}

static int gather(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct gathering *g = ctx;
	struct cairn_err why = {0};
	int rc = gather_unit(&g->workers[worker], dwarf_unit(g->dw, item), &g->units[item], &why);
	release_unit(g, item);
	if (g->leaves_out && (rc == -EBADMSG || rc == -EOPNOTSUPP))
		rc = leave_out(g, item, &why) < 0 ? err_nomem(&why, "a unit") : 0;
	if (rc < 0)
		*err = why;
	return rc;
}

static void find_info(struct gathering *g)
{
	const struct cairn_binary *bin = dwarf_binary(g->dw);
	g->debug = binary_debug(bin) ? binary_debug(bin) : binary_main(bin);
	for (size_t i = 0; i < elf_n_sections(g->debug); i++)
		if (!strcmp(elf_section_at(g->debug, i)->name, ".debug_info") &&
		    elf_section_at(g->debug, i)->data)
			g->info = elf_section_at(g->debug, i);
}

static int gather_all(struct gathering *g, struct code_span span, bool sites, unsigned int threads,
		      struct cairn_err *err)
{
	unsigned int width = pool_width(threads);
	size_t n = dwarf_n_units(g->dw);
	find_info(g);
	g->units = calloc(n + 1, sizeof(*g->units));
	g->workers = calloc(width, sizeof(*g->workers));
	int rc = g->units && g->workers ? 0 : err_nomem(err, "the units of a binary");
	for (unsigned int i = 0; rc >= 0 && i < width; i++)
		rc = gatherer_init(&g->workers[i], g->dw, span, sites);
	if (rc >= 0)
		rc = pool_run(n, threads, gather, g, err);
	for (unsigned int i = 0; g->workers && i < width; i++)
		gatherer_fini(&g->workers[i]);
	free(g->workers);
	dwarf_release(g->dw);
	if (rc >= 0 && n && g->n_left_out == n) {
		*err = g->why;
		return -EBADMSG;
	}
	return rc;
}

static void gathering_fini(struct gathering *g)
{
	size_t n = g->dw ? dwarf_n_units(g->dw) : 0;
	for (size_t i = 0; g->units && i < n; i++)
		unit_facts_fini(&g->units[i]);
	free(g->units);
	dwarf_close((struct dwarf *)g->dw);
}

/* ---- the binary's attributes ---- */

/* The note with the build-id of the described binary; empty when it has none. */
static void encode_note(const struct cairn_binary *bin, struct bytes *ret)
{
	size_t len;
	const uint8_t *id = cairn_binary_build_id(bin, &len);
	if (!len)
		return;
	put_u32(ret, sizeof("GNU"));
	put_u32(ret, (uint32_t)len);
	put_u32(ret, NT_GNU_BUILD_ID);
	put_bytes(ret, "GNU", sizeof("GNU"));
	put_bytes(ret, id, len);
	while (ret->v.n % 4)
		put_u8(ret, 0);
}

/* With its NUL. */
static uint32_t longest_string(const struct bytes *text)
{
	size_t longest = 0;
	for (size_t at = 0, n; at < text->v.n; at += n) {
		n = strlen((const char *)text->v.p + at) + 1;
		longest = n > longest ? n : longest;
	}
	return (uint32_t)longest;
}

static void encode_header(const struct code_map *code, uint32_t n_frames, uint32_t n_left_out,
			  const struct cairn_binary *bin, struct bytes *ret)
{
	const struct elf *debug = binary_separate_debug(bin);
	struct sidecar_header h = {
		.magic = SIDECAR_MAGIC,
		.version = SIDECAR_VERSION,
		.header_size = sizeof(h),
		.base = code->all.base,
		.span = code->all.size,
		.n_frames = n_frames,
		.analysis = SIDECAR_ANALYSIS,
		.maker = SIDECAR_MAKER,
		.n_left_out = n_left_out,
		.flags = binary_has_symtab(bin) ? SIDECAR_HAS_SYMTAB : 0,
		.debug_names = debug ? elf_names_print(debug) : 0,
	};
	put_bytes(ret, &h, sizeof(h));
}

/* ---- sections ---- */

struct making {
	struct code_map code;
	struct strings strings;
	struct symbol_table symbols;
	struct gathering gathering;
	struct joined joined;
	struct site_table sites;
	struct cairn_btfgen distilled;
	struct meanings meanings;
	struct dw_func_index functions; /* until the sites have it */
	struct bytes part[CAIRN_SIDECAR_SECTIONS_MAX];
	struct cairn_sidecar_image_section about[CAIRN_SIDECAR_SECTIONS_MAX];
	uint32_t type[CAIRN_SIDECAR_SECTIONS_MAX];
	uint64_t flags[CAIRN_SIDECAR_SECTIONS_MAX];
	size_t n;
};

static struct bytes *add(struct making *m, const char *name, uint32_t type, const char *what)
{
	assert(m->n < CAIRN_SIDECAR_SECTIONS_MAX);
	m->about[m->n] = (struct cairn_sidecar_image_section){.name = name, .what = what};
	m->type[m->n] = type;
	return &m->part[m->n++];
}

static void count(struct making *m, uint64_t n)
{
	m->about[m->n - 1].n = n;
}

static void encode_dwarf(struct making *m)
{
	const struct joined *j = &m->joined;
	encode_files(j, add(m, ".cairn.files", SHT_PROGBITS, "files"));
	count(m, j->files.path.n - 1);
	encode_functions(j, add(m, ".cairn.functions", SHT_PROGBITS, "functions"));
	count(m, j->functions.v.n - 1);
	encode_names(j, add(m, ".cairn.names", SHT_PROGBITS, ""));
	encode_frames(j, add(m, ".cairn.frames", SHT_PROGBITS, "functions and inlined copies"));
	count(m, j->n_frames);
	uint64_t n[2];
	struct bytes *pages =
		add(m, ".cairn.pages", SHT_PROGBITS, "changes of the innermost function");
	struct bytes *code = add(m, ".cairn.code", SHT_PROGBITS, "changes of the line");
	encode_code(j, &m->code, &m->symbols, pages, code, n);
	m->about[m->n - 2].n = n[0];
	m->about[m->n - 1].n = n[1];
}

static void encode_records(struct making *m, const char *name, const struct record_set *records,
			   const char *what)
{
	record_set_put(records, add(m, name, SHT_PROGBITS, what));
	count(m, records->starts.n);
}

static void encode_ranked(struct making *m, const char *name, struct ranked_set *set,
			  const char *what)
{
	ranked_set_put(set, add(m, name, SHT_PROGBITS, what));
	count(m, set->records.starts.n);
}

/* As ELF compresses sections: 12 bytes for each site become 4. */
static void put_compressed(struct bytes *ret, const void *bytes, size_t size)
{
	Elf64_Chdr h = {.ch_type = ELFCOMPRESS_ZSTD, .ch_size = size, .ch_addralign = 8};
	size_t room = ZSTD_compressBound(size);
	void *compressed = malloc(room);
	size_t n = compressed ? ZSTD_compress(compressed, room, bytes, size, COMPRESSION_LEVEL) : 0;
	put_bytes(ret, &h, sizeof(h));
	if (compressed && !ZSTD_isError(n))
		put_bytes(ret, compressed, n);
	else
		ret->failed = true;
	free(compressed);
}

static void encode_all_sites(struct making *m)
{
	struct site_table *p = &m->sites;
	encode_sites(p, add(m, ".cairn.sites", SHT_PROGBITS, "functions"));
	count(m, p->starts.n);
	name_index_put(&p->names, add(m, ".cairn.site_names", SHT_PROGBITS, ""));
	encode_ranked(m, ".cairn.site_attrs", &p->site_attrs, "ways to be a site");
	encode_ranked(m, ".cairn.arguments", &p->arguments, "lists of locations");
	encode_marks(p, add(m, ".cairn.frame_sites", SHT_PROGBITS, "sites"));
	count(m, p->n_sites);
	encode_records(m, ".cairn.locations", &p->locations, "locations");
	encode_records(m, ".cairn.prototypes", &p->prototypes, "prototypes");
	encode_parameters(p, add(m, ".cairn.parameters", SHT_PROGBITS, "parameters"));
	count(m, p->parameters.n / 2);
	encode_types(&p->types, add(m, ".cairn.types", SHT_PROGBITS, "types"));
	count(m, p->types.outsides.starts.n);
	encode_type_names(&p->types,
			  add(m, ".cairn.type_names", SHT_PROGBITS, "types that have a name"));
	count(m, p->types.listed.n / 3);
	encode_addresses(p, add(m, ".cairn.addresses", SHT_PROGBITS, "named addresses"));
	count(m, p->addresses.n);
	put_bytes(add(m, ".BTF", SHT_PROGBITS, "types"), m->distilled.main.bytes,
		  m->distilled.main.size);
	count(m, m->distilled.n_types);
	if (m->distilled.inlined.bytes) {
		put_compressed(add(m, ".BTF.inline", SHT_PROGBITS, "sites"),
			       m->distilled.inlined.bytes, m->distilled.inlined.size);
		count(m, m->distilled.n_sites);
		m->flags[m->n - 1] = SHF_COMPRESSED;
	}
	if (p->reduced.v.n) {
		put_compressed(
			add(m, REDUCED_SECTION, SHT_PROGBITS, "functions and inlined copies"),
			p->reduced.v.p, p->reduced.v.n);
		count(m, p->n_reduced);
		m->flags[m->n - 1] = SHF_COMPRESSED;
		VEC_FREE(&p->reduced.v);
	}
}

/* The contents of types; with locations when this form is wanted, too. */
static int distil_types(struct making *m, const struct cairn_sidecar_make_opts *make_opts,
			struct cairn_err *err)
{
	struct cairn_btfgen_opts opts = {.size = sizeof(opts),
					 .threads = make_opts->threads,
					 .vars = CAIRN_BTFGEN_VARS_PERCPU,
					 .dialect = make_opts->btf_inline ? CAIRN_BTF_LOC_N
									  : CAIRN_BTF_NO_LOC};
	return distil_with_meanings(m->gathering.dw, &opts, &m->distilled, &m->meanings,
				    &m->functions, err);
}

static int make_sites(struct making *m, unsigned int threads, struct cairn_err *err)
{
	struct cairn_sites_opts opts = {.size = sizeof(opts), .threads = threads};
	int rc = sites_open_shared(m->gathering.dw, &m->functions, &opts, &m->sites.sites, err);
	return rc < 0 ? rc
		      : site_table_make(&m->sites, threads, &m->joined, m->code.all, &m->meanings,
					&m->strings, err);
}

/*
 * Object files have nothing to unwind. A kernel's rows would be from .debug_frame, 1.5 MB of 21:
 * nothing here unwinds kernels, which have a format and an unwinder of their own.
 */
static bool has_stacks(const struct elf *e)
{
	for (size_t i = 0; i < elf_n_sections(e); i++)
		if (!strcmp(elf_section_at(e, i)->name, ".orc_unwind"))
			return false;
	return !elf_is_relocatable(e);
}

/*
 * The unwind rows, as in cairn/shared/unwind.h. Damaged rows, and rows of another architecture, are
 * for the unwinder to report: everything else in the sidecar is right without them.
 */
static int encode_unwind(struct making *m, const struct cairn_binary *bin, unsigned int threads,
			 struct cairn_err *err)
{
	const struct cairn_unwind_header *h;
	struct cairn_err unused;
	struct cfi *cfi = NULL;
	uint8_t *bytes = NULL;
	size_t size;
	if (!has_stacks(binary_main(bin)))
		return 0;
	int rc = cfi_open(bin, &cfi, &unused);
	if (rc >= 0)
		rc = unwind_table_build(cfi, UNWIND_PROVED, threads, &bytes, &size, &unused);
	cfi_close(cfi);
	h = (const struct cairn_unwind_header *)bytes;
	if (rc >= 0 && h->text_bytes) {
		put_bytes(add(m, ".cairn.cfi", SHT_PROGBITS, "rows"), bytes, size);
		count(m, h->n_rows);
	}
	free(bytes);
	return rc == -ENOMEM ? err_nomem(err, "an unwind table") : 0;
}

static int encode(struct making *m, const struct cairn_binary *bin, unsigned int threads,
		  struct cairn_err *err)
{
	encode_note(bin, add(m, ".note.gnu.build-id", SHT_NOTE, ""));
	struct bytes *header = add(m, ".cairn", SHT_PROGBITS, "");
	encode_header(&m->code, m->joined.n_frames, m->gathering.n_left_out, bin, header);
	encode_binding(binary_main(bin),
		       add(m, ".cairn.binding", SHT_PROGBITS, "segments, and pages of code"));
	const struct functions *functions;
	int rc = 0;
	if (kernel_btf_is_there(binary_main(bin)))
		rc = kernel_btf_encode(
			binary_main(bin),
			add(m, KERNEL_BTF_SECTION, SHT_PROGBITS, "which BTF the kernel has"), err);
	if (rc == 0)
		rc = binary_functions(bin, &functions, err);
	if (rc == 0 && functions)
		rc = symbol_table_make(functions, m->code.all, &m->strings, &m->symbols);
	if (rc == -ERANGE)
		return err_set(err, rc, "%s: too many or too long symbols", cairn_binary_path(bin));
	if (rc < 0)
		return err_nomem(err, "symbols");
	encode_symbols(&m->symbols, add(m, ".cairn.symbols", SHT_PROGBITS, "symbols"));
	count(m, m->symbols.v.n);
	if (m->gathering.dw)
		encode_dwarf(m);
	if (m->sites.sites)
		encode_all_sites(m);
	if (m->sites.sites)
		rc = encode_symbol_names(&m->sites, bin,
					 add(m, ".cairn.symbol_names", SHT_PROGBITS, "names"), err);
	if (rc < 0)
		return rc == -ENOMEM ? err_nomem(err, "names of symbols") : rc;
	if (m->sites.sites)
		count(m, m->part[m->n - 1].v.n / sizeof(struct sidecar_symbol_name));
	rc = encode_unwind(m, bin, threads, err);
	if (rc < 0)
		return rc;
	*add(m, ".cairn.strings", SHT_PROGBITS, "") = m->strings.text;
	m->strings.text = (struct bytes){0};
	const struct bytes *text = &m->part[m->n - 1];
	uint32_t longest = text->failed ? 0 : longest_string(text);
	if (!header->failed)
		memcpy(header->v.p + offsetof(struct sidecar_header, string_max), &longest,
		       sizeof(longest));
	for (size_t i = 0; i < m->n; i++) {
		if (m->part[i].failed)
			return err_nomem(err, "the sections of a sidecar");
		m->about[i].size = m->part[i].v.n;
	}
	return 0;
}

/* Real binaries have a few; object files, of which each function may have one, are not here. */
enum { CODE_SECTIONS_MAX = 64 };

/* The binary's sections of code as a debug file has them, without bytes: addresses lie in them. */
static size_t add_code_sections(const struct cairn_binary *bin, struct out_section *to)
{
	const struct elf *e = binary_main(bin);
	size_t n = 0;
	for (size_t i = 0; i < elf_n_sections(e) && !elf_is_relocatable(e); i++) {
		const struct elf_section *s = elf_section_at(e, i);
		if (is_code_section(s) && n < CODE_SECTIONS_MAX)
			to[n++] = (struct out_section){.name = s->name,
						       .type = SHT_NOBITS,
						       .size = s->size,
						       .flags = SHF_ALLOC | SHF_EXECINSTR,
						       .addr = s->addr.v};
	}
	return n;
}

static int write_out(struct making *m, const struct cairn_binary *bin,
		     struct cairn_sidecar_image *ret, struct cairn_err *err)
{
	struct out_section sections[CAIRN_SIDECAR_SECTIONS_MAX + CODE_SECTIONS_MAX];
	size_t n = 0, n_code;
	uint8_t *bytes;
	for (size_t i = 0; i < m->n; i++) {
		if (!m->part[i].v.n)
			continue;
		ret->sections[n] = m->about[i];
		sections[n++] = (struct out_section){m->about[i].name, m->type[i], m->part[i].v.p,
						     m->part[i].v.n, m->flags[i]};
	}
	n_code = add_code_sections(bin, sections + n);
	int rc = elf_out_make(sections, n + n_code, &bytes, &ret->size, err);
	if (rc < 0)
		return rc;
	ret->bytes = bytes;
	ret->n_sections = n;
	ret->n_overlaps = m->joined.n_overlaps;
	ret->n_left_out = m->gathering.n_left_out;
	ret->left_out_why = m->gathering.why;
	return 0;
}

static int need_symbols(const struct cairn_binary *bin, struct cairn_err *err)
{
	const struct functions *functions;
	int rc = binary_functions(bin, &functions, err);
	if (rc < 0 || (functions && functions->ranges.n))
		return rc;
	return err_lines(err, -ENODATA, cairn_binary_search_log(bin),
			 "%s has neither debug information nor symbols", cairn_binary_path(bin));
}

static int make(struct making *m, const struct cairn_binary *bin,
		const struct cairn_sidecar_make_opts *opts, struct cairn_sidecar_image *ret,
		struct cairn_err *err)
{
	unsigned int threads = opts->threads;
	struct dwarf *dw;
	int rc = code_map_make(bin, &m->code, err);
	if (rc >= 0 && strings_init(&m->strings) < 0)
		rc = err_nomem(err, "strings");
	if (rc >= 0 && cairn_binary_has_dwarf(bin)) {
		rc = dwarf_open(bin, threads, &dw, err);
		if (rc < 0)
			return rc;
		m->gathering.dw = dw;
		const char *which;
		ret->n_missing = dwarf_missing(dw, &which);
		ret->missing = strdup(which);
		if (!ret->missing)
			return err_nomem(err, "the names of missing files");
		m->gathering.leaves_out = !opts->sites;
		rc = gather_all(&m->gathering, m->code.all, opts->sites, threads, err);
		if (rc >= 0)
			rc = join_units(m->gathering.units, dwarf_n_units(dw), &m->strings,
					&m->joined, err);
		if (rc >= 0 && opts->sites)
			rc = distil_types(m, opts, err);
		if (rc >= 0 && opts->sites)
			m->sites.is_reduced_wanted = opts->args;
		if (rc >= 0 && opts->sites)
			rc = make_sites(m, threads, err);
	} else if (rc >= 0) {
		rc = need_symbols(bin, err);
	}
	if (rc >= 0)
		rc = encode(m, bin, threads, err);
	return rc < 0 ? rc : write_out(m, bin, ret, err);
}

/*
 * Sites inside a function need its code, and object files have no frames.
 */
static int check_args(const struct cairn_binary *bin, const struct cairn_sidecar_make_opts *opts,
		      struct cairn_err *err)
{
	const struct elf *e = binary_main(bin);
	if (!opts->sites)
		return err_set(
			err, -EINVAL,
			"parameters in the middle of functions belong to a sidecar with sites");
	if (elf_is_relocatable(e))
		return err_set(err, -EOPNOTSUPP,
			       "%s: an object file runs nowhere: it has no frames whose parameters "
			       "could be queried",
			       cairn_binary_path(bin));
	if (!binding_has_code(e))
		return err_set(err, -ENODATA,
			       "%s: a debug file has no code, by which parameters in the middle of "
			       "functions are "
			       "known: name the program",
			       cairn_binary_path(bin));
	return 0;
}

int cairn_sidecar_make(const struct cairn_binary *bin, const struct cairn_sidecar_make_opts *opts,
		       struct cairn_sidecar_image *ret, struct cairn_err *err)
{
	struct making m = {.gathering.lock = PTHREAD_MUTEX_INITIALIZER};
	struct cairn_sidecar_make_opts o;
	*ret = (struct cairn_sidecar_image){0};
	int rc = opts_take(&o, sizeof(o), opts, err);
	if (rc >= 0 && o.args)
		rc = check_args(bin, &o, err);
	if (rc >= 0 && o.sites)
		rc = elf_need_x86_64(binary_main(bin),
				     "sites of functions, which can be left out, are known", err);
	if (rc >= 0)
		rc = make(&m, bin, &o, ret, err);
	if (rc >= 0)
		rc = binary_check_inputs(bin, err);
	site_table_fini(&m.sites);
	cairn_btfgen_free(&m.distilled);
	meanings_fini(&m.meanings);
	dw_func_index_fini(&m.functions);
	joined_fini(&m.joined);
	gathering_fini(&m.gathering);
	strings_fini(&m.strings);
	code_map_fini(&m.code);
	VEC_FREE(&m.symbols.v);
	for (size_t i = 0; i < m.n; i++)
		VEC_FREE(&m.part[i].v);
	if (rc < 0)
		cairn_sidecar_image_free(ret);
	return rc < 0 ? err_while(err, rc, "while making the sidecar of %s", cairn_binary_path(bin))
		      : 0;
}

void cairn_sidecar_image_free(struct cairn_sidecar_image *image)
{
	if (!image)
		return;
	free(image->bytes);
	free(image->missing);
	*image = (struct cairn_sidecar_image){0};
}
