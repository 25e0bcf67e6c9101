/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module btfsites answers cairn/sites.h from BTF with LOC kinds.
 *
 *	open.c          the blobs, their bases, and the sections that their sites count from
 *	link.c          which module has the sites of a kernel
 *	names.c         which FUNCs a name or a pattern means
 *	location.c      a LOC_PARAM as a location
 *	function.c      a FUNC and its sites as a struct cairn_function
 *	producers.c     which compilers and languages the code is of
 *	body.c          an out-of-line body: its arguments by the convention, its caveats by its code
 *	few.c           the symbols and hazards around the places of one function
 *	surroundings.c  what code is around a site: instruction boundaries, symbol, container
 *	sample.c        whether sites are those of the code that runs
 *	sites.c         the operations of a provider (sites/provider.h)
 */
#ifndef BTFSITES_BTFSITES_H
#define BTFSITES_BTFSITES_H

#include <cairn/btf.h>
#include <cairn/sites.h>

#include "base/arena.h"
#include "base/vec.h"
#include "btf/types.h"
#include "cfi/cfi.h"
#include "dwarf/dwarf.h"
#include "elf/functions_around.h"
#include "insn/insn.h"
#include "sites/answers.h"
#include "sites/provider.h"
#include "sites/spec.h"

enum {
	/* .BTF.base, a kernel, a module, its sites; more are refused */
	BTFSITES_CHAIN_MAX = 8,
	BTFSITES_WORD = 8,
};

/* A LOCSEC, and the section of the binary that it is about. */
struct loc_section {
	const uint32_t *words; /* three for each site: func, loc_proto, offset */
	uint32_t n;
	uint64_t start, size; /* of the section */
	const char *name;
};

/* A function's site as the blob has it. */
struct place {
	uint64_t at;
	uint32_t func, proto;
};

struct place_list {
	VEC(struct place) v;
};

/* Ids of FUNCs. */
struct func_ids {
	VEC(uint32_t) v;
};

/* A function symbol. */
struct body_name {
	const char *name;
	struct cairn_vaddr at;
};

struct body_names {
	VEC(struct body_name) v; /* by name, then address */
};

/* The code around the site that was looked at last. */
struct surroundings {
	uint64_t from, hi;  /* what is said here holds for [from, hi): empty at first */
	uint64_t lo;        /* decoded from here on, which may be before from */
	const char *symbol; /* NULL: none covers it */
	uint64_t symbol_at;
	const uint8_t *code;
	struct insn_starts starts;
};

/* What is known around few places, while that costs less than to know it of the whole binary. */
struct few {
	struct functions_around functions;
	struct kernel_code *code; /* NULL: of no kernel */
	unsigned int n_asked, n_symbols_asked;
};

struct btf_sites {
	struct cairn_sites sites; /* first */
	char *path;
	bool is_embedded; /* the sites are a section of the binary */
	struct cairn_btf *chain[BTFSITES_CHAIN_MAX];
	size_t n_chain;
	const struct cairn_btf *inlined; /* the last of the chain; main is the one before */
	const struct cairn_btf *main;
	VEC(struct loc_section) sections;
	uint64_t base; /* of ADDR constants */
	bool kernel, relocatable;
	bool is_running;    /* the code is that of the kernel that runs: it may have breakpoints */
	bool has_producers; /* the next two are known */
	bool is_foreign;    /* not all code is C: mangled names, or Go */
	bool is_gcc;        /* all code was compiled by GCC */
	struct btf_types *reader;
	struct arena arena; /* the returned results */
	struct surroundings around;
	struct few few;
	struct cfi *cfi;              /* of a file without .symtab */
	struct place_list by_address; /* all sites; made by the first question about an address */
	struct answers answered;
};

static inline struct btf_sites *btf_sites_of(struct cairn_sites *sites)
{
	return (struct btf_sites *)sites;
}

/* A new provider, without blobs. NULL: no memory. */
struct btf_sites *btfsites_new(const struct cairn_binary *bin);
void btfsites_free(struct btf_sites *s);

/* ---- link.c ---- */

#define LINK_SECTION ".BTF.inline.link"

/* Borrowed from the section. */
struct btf_link {
	const char *module;
	const uint8_t *sha256;
	uint32_t n_bytes;
};

/* Returns 1; 0: the binary has none. -EBADMSG: it has another form; as elf_section(). */
int btfsites_link_read(const struct btf_sites *s, struct btf_link *ret, struct cairn_err *err);

/* Whether the sites are those that it names, if there is one. 0; -ESTALE (err: both hashes). */
int btfsites_link_check(const struct btf_sites *s, struct cairn_err *err);

/* ---- names.c ---- */

/*
 * btfsites_named - FUNCs whose name is @name, or ends in it after "::"
 *
 * Returns 0, -ENOMEM. Cost: a search in the strings, and a pass over the records.
 */
int btfsites_named(const struct btf_sites *s, const char *name, struct func_ids *ret);

/*
 * btfsites_matching - all FUNCs that pass @want, in the order of their names, then ids
 *
 * @places  all sites, in the order of functions
 * Returns 0, -ENOMEM.
 */
int btfsites_matching(const struct btf_sites *s, const struct group_filter *want,
		      const struct place_list *places, struct func_ids *ret);

/* All function symbols. Returns 0, -ENOMEM. */
int btfsites_bodies(const struct cairn_binary *bin, struct body_names *ret);

/* Those of a name, which are adjacent. Returns their number. */
size_t btfsites_bodies_of(const struct body_names *b, const char *name,
			  const struct body_name **ret);

/* ---- location.c ---- */

/*
 * btfsites_location - the location of an argument of @bytes bytes, 0 if that is not known
 *
 * @param  id of a LOC_PARAM; 0, or another kind: not recorded, or damaged
 * Returns 0, -ENOMEM.
 */
int btfsites_location(const struct btf_sites *s, uint32_t param, uint64_t bytes,
		      struct arena *arena, struct cairn_location *ret);

/* ---- few.c ---- */

/*
 * btfsites_see_few - read what is around the places that are asked for next
 *
 * @at  all of them, @n
 * Later questions are about these until the next call. Nothing is read if it has been called some
 * times: then the whole binary is cheaper. Returns 0, -ENOMEM.
 */
int btfsites_see_few(struct btf_sites *s, const uint64_t *at, size_t n);
void btfsites_forget_few(struct btf_sites *s);

/* The functions that say what is at @at. *@ret is NULL where symbols are damaged. 0, -ENOMEM. */
int btfsites_functions_at(const struct btf_sites *s, uint64_t at, const struct functions **ret,
			  struct cairn_err *err);

/* The symbols that begin at @at, and their number. 0, or as elf_symbols(). */
int btfsites_symbols_at(const struct btf_sites *s, uint64_t at, const struct elf_symbol **ret,
			size_t *ret_n, struct cairn_err *err);

/* The operation symbol() of a provider. */
bool btfsites_symbol(struct cairn_sites *sites, struct cairn_vaddr at, char *name, size_t size);

/* The hazard of a kprobe on an instruction of a kernel. */
enum cairn_hazard btfsites_kernel_hazard(const struct btf_sites *s, struct cairn_vaddr at);

/* ---- surroundings.c ---- */

/*
 * btfsites_surround - see the code around @at
 *
 * Returns 0, -ENOMEM. s->around is then about @at; it has no code where none is known.
 */
int btfsites_surround(struct btf_sites *s, struct cairn_vaddr at, struct cairn_err *err);

/* The hazard of a probe there, after btfsites_surround(). */
enum cairn_hazard btfsites_hazard(const struct btf_sites *s, struct cairn_vaddr at);

/* Whether it is in the middle of an instruction of that code, and not of a probe of others. */
bool btfsites_is_off_boundary(const struct btf_sites *s, struct cairn_vaddr at);

/* Sets symbol, container and the distances, after btfsites_surround(). Returns 0, -ENOMEM. */
int btfsites_place(const struct btf_sites *s, struct arena *arena, struct cairn_site *site);

/* ---- sample.c ---- */

/*
 * btfsites_check_sample - whether sites that lie far apart are at the starts of instructions
 *
 * Returns 0; -ESTALE: many are not, so the blob is another build's; -ENOMEM. Cost: some hundred
 * functions are decoded.
 */
int btfsites_check_sample(struct btf_sites *s, struct cairn_err *err);

/* ---- producers.c ---- */

/*
 * Whether all code is GCC's, by .comment; whether some is of another language. Cost: the first
 * time, a pass over the records.
 */
void btfsites_see_producers(struct btf_sites *s);

/* ---- body.c ---- */

/*
 * btfsites_body - the site at the symbol of function @f, whose parameters are set
 *
 * @proto  id of its FUNC_PROTO
 * Returns 0, -ENOMEM.
 */
int btfsites_body(struct btf_sites *s, const struct cairn_function *f, uint32_t proto,
		  struct cairn_vaddr at, struct arena *arena, struct cairn_site *ret,
		  struct cairn_err *err);

/* ---- function.c ---- */

/* Whether FUNC @id is one of the main blob: some code has its name and its prototype. */
static inline bool btfsites_has_body(const struct btf_sites *s, uint32_t id)
{
	return id >= cairn_btf_start_id(s->main) && id < cairn_btf_end_id(s->main);
}

/* The sites of some FUNCs, or of all, in the order of the blob. */
int btfsites_places(const struct btf_sites *s, const struct func_ids *ids, struct place_list *ret,
		    struct cairn_err *err);
int btfsites_all_places(const struct btf_sites *s, struct place_list *ret, struct cairn_err *err);

/*
 * btfsites_function - FUNC @id
 *
 * @places  its sites, @n_places; put in the order of addresses
 * @bodies  addresses of the symbols of its name, in order; none unless btfsites_has_body()
 * Returns 0; -EBADMSG, -ESTALE, -ENOMEM.
 */
int btfsites_function(struct btf_sites *s, uint32_t id, struct place *places, uint32_t n_places,
		      const struct cairn_vaddr *bodies, size_t n_bodies, struct arena *arena,
		      struct cairn_function *ret, struct cairn_err *err);

#endif
