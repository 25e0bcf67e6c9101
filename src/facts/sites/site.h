/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns an entry of the function index into a site
 *
 * There are two stages. site_build() does the costly work that is independent for each site
 * (address, chain, locations) and runs in any number of threads. The work on the type graph, which
 * only one thread may extend, is done later by function.c.
 *
 * The files of the module, by the question that each answers:
 *
 * From the index to functions
 *	group.c            index entries gathered by name and declaration
 *	by_unit.c          the entries of many functions, unit by unit
 *	abstract.c         the functions that copies are instances of
 *	symbol_names.c     names that only the symbol tables have
 *	own_symbol.c       the one of several symbols at an address that a body is called by
 *	icf.c              bodies of several functions that the linker folded
 *
 * Sites
 *	site.c             one index entry made into a struct cairn_site
 *	boundary.c         hazards of many sites of one function
 *	extra_entries.c    extra entries of copies: further CFG entries and entry rows
 *	entry_rows.c       the line rows at which duplicated code is entered
 *	copy_code.c        the instructions of a copy
 *	copy_exits.c       where control leaves a copy
 *	kernel_paths.c     paths in the kernel that its file does not show
 *	batch.c            sites of many functions, without types
 *	copies.c           all sites of all functions, for callers that write them down
 *
 * Whether events count calls
 *	cfg_entries.c      where control enters a copy that has no marked entry
 *	event_count.c      whether each call hits a copy's sites once (copy_loop.c, bypass.c)
 *	analyse.c          event counts of all copies of many functions
 *	count_caveats.c    the caveats in words
 *
 * Whether values may be believed
 *	args_check.c       which descriptions of arguments are believed
 *	quirks/            rules about what compilers get wrong, as a table (quirks/quirks.h)
 *	arg_type.c         what the type of a parameter is
 *	convention.c       whether a function follows the ABI, and how it gets a parameter
 *	go.c               arguments of Go's functions, which have a convention of their own
 *	go_results.c       their results
 *
 * Queries
 *	provider.c         the public functions, for the debug information or a sidecar
 *	sites.c            the debug information as provider: find and visit
 *	spelling.c         names of C++, of which each program spells the types in its own way
 *	spec.c             the names that a user types for a function
 *	suggest.c          near names
 *	foreign_spec.c     what a name may mean to users of other tools
 *	function.c         a group made into a struct cairn_function
 *	lines.c            the places of lines
 *	vars.c             the variables in scope at a line
 *	globals.c          the variables of files, by name
 *	scopes_at.c        the functions that an address is in
 *	call_site_value.c  the value that a caller passed in a register
 *	usdt.c             USDT probes, and each as if it were a function
 *	usdt_arg.c         their arguments
 *	reentry.c          whether tail calls may reach a function's entry again
 */
#ifndef SITES_SITE_H
#define SITES_SITE_H

#include "base/vec.h"
#include "dwarf/index.h"
#include "dwarf/params.h"
#include "loc/loc.h"
#include "sites/abstract.h"
#include "sites/boundary.h"

struct symbol_name;

/* The statement that a call's own is part of, from the rows around the call's entry. */
struct enclosing {
	struct cairn_vaddr at; /* where it begins; 0: none shows */
	/* the last part of its code after the entry, in bytes after that; equal: none */
	uint16_t from, to;
};

/* The data that all sites of a binary share; read only. */
struct site_env {
	const struct cairn_binary *bin;
	const struct dwarf *dw;
	const struct cfi *cfi;
	struct elf *code;
	const struct dw_func_index *index;
	bool assume_unmodified; /* cairn_sites_opts */
	bool kernel;            /* a kernel or module, which user probes do not reach */
	/*
	 * Addresses, kinds and locations only: no hazards, names of containers and symbols, or
	 * links of chains. In chains only n_chain is set. Bodies are left out if symbol and
	 * convention give all of their facts. For callers that want all sites of a large file.
	 */
	bool bare;
	/*
	 * The debug information is .cairn.dwarf (sidecar/reduced.h): it records on a copy the facts
	 * that come from other copies.
	 */
	bool is_reduced;
	/*
	 * Addresses at which bodies of several functions begin (icf.h); NULL: at no address of this
	 * query.
	 */
	const struct symbol_name *icf_groups;
};

/* Scratch of one worker, with the facts of the container that it worked on last. */
enum { KNOWN_CALLS = 64 };

struct site_worker {
	struct arena *arena;
	uint32_t container;          /* index entry; DW_FUNC_NONE at first */
	struct dw_die function;      /* its DIE */
	const char *container_name;  /* NULL: it has none; not looked for if sites are bare */
	struct dw_range_list ranges; /* its code */
	struct dw_range_list own;    /* that of the current site */
	struct cairn_vaddr container_entry;
	bool container_has_code;
	struct flow *flow;
	struct cfg *cfg;
	bool flow_made, cfg_made;
	struct frame_addresses taken;
	struct boundary boundary;
	struct abstracts abstracts;
	/*
	 * The last calls of chains, direct-mapped by entry: copies inside of one copy have its
	 * chain after their own call.
	 */
	struct known_call {
		uint32_t entry; /* + 1; 0: none */
		struct cairn_inlined_call call;
	} calls[KNOWN_CALLS];
};

void site_worker_init(struct site_worker *w, struct arena *arena);
void site_worker_fini(struct site_worker *w);

/* A request: an entry of the index at the address that its DIE gives, or at another row of it. */
struct site_request {
	uint32_t entry;
	bool has_row;
	bool is_cfg_entry;     /* at is another one of built_site.cfg_entries */
	struct cairn_vaddr at; /* of the row, with its view; of the CFG entry */
	uint64_t view;
	uint64_t view_from;      /* views before it belong to another entry at the same address */
	struct enclosing around; /* of the row */
};

struct built_site {
	struct cairn_site site;
	uint64_t view;
	bool has_view;
	struct dw_die die;
	const struct dw_range *ranges; /* its code, as dw_ranges() returns it */
	uint32_t n_ranges;
	/* Formals of its abstract instance: the types of its args are theirs. */
	struct formals formals;
	struct cairn_arg *args;
	uint8_t *bound; /* enum bound of each of the formals */
	/* of each: the code shows that it is there at the entry (loc_from_prologue()) */
	bool *proven;
	struct expression *exprs; /* the sources of their locations */
	uint32_t container;       /* index entry */
	struct cairn_vaddr container_entry;
	/*
	 * A location cannot be assigned to one of the points at its address: the producer has no
	 * views, or a list came without. See function.c.
	 */
	bool no_views;
	/*
	 * The further CFG entries, besides site.at, of a copy without an entry that can be entered
	 * at several instructions.
	 */
	const struct cairn_vaddr *cfg_entries;
	unsigned int n_cfg_entries;
	struct enclosing around; /* of its row */
	bool grows_stack; /* nothing but growing its stack leads a body back to its entry (go.c) */
	bool lost_marker; /* a copy made by GCC, which marks entries, without an entry */
	/* for an entry without views: general registers whose value is used, flow_used() */
	uint16_t used;
};

/*
 * site_build - everything about one site but types
 *
 * @request  an entry of the index with code
 * Returns 1 and *@ret; 0 when its ranges are all empty (no code after all); -EBADMSG, -ENOMEM.
 */
int site_build(const struct site_env *env, struct site_worker *w,
	       const struct site_request *request, struct built_site *ret, struct cairn_err *err);

/*
 * site_build_now - the same in the middle of a function: the locations of its parameters when a
 * program is stopped there
 *
 * @entry  of the index, whose code holds @at
 * @at     the program's position, @next: where it continues; see struct loc_context
 * Only the DIE, the formals and the locations of *@ret are set, and whether it is a copy:
 * site.n_chain, 0 or 1.
 * Returns 1 or as site_build().
 */
int site_build_now(const struct site_env *env, struct site_worker *w, uint32_t entry,
		   struct cairn_vaddr at, struct cairn_vaddr next, struct built_site *ret,
		   struct cairn_err *err);

/*
 * site_context_now - where the variables of a function are looked for when a program is at @at
 *
 * For site_locate(), with the same worker, which has the function as its container then.
 * Returns 0, -EBADMSG, -ENOMEM.
 */
int site_context_now(const struct site_env *env, struct site_worker *w, uint32_t entry,
		     struct cairn_vaddr at, struct cairn_vaddr next, struct loc_context *ret,
		     struct cairn_err *err);

/*
 * The location of a parameter or variable, by all that loc knows. Returns 0 and *@ret, -ENOMEM.
 * It may need the caller's frame, if ctx->is_now.
 */
int site_locate(const struct site_env *env, struct site_worker *w, struct loc_context *ctx,
		const struct dw_die *die, struct cairn_location *ret);

/* Whether the instruction may run again in one call of the worker's container; true if unknown. */
bool site_is_in_loop(const struct site_env *env, struct site_worker *w, struct cairn_vaddr at);

/* site_match_formal() of another one than its guess; @origin is that of the formal. */
uint32_t site_search_formal(const struct formals *f, const struct dw_die *formal, dw_off origin);

/*
 * Which parameter a concrete formal is; n when it is none of them. By identity, never by position:
 * a reference that is damaged leaves its parameter without a description, and moves no other.
 * @guess  checked first: nearly always the one after the formal before it
 */
static inline uint32_t site_match_formal(const struct formals *f, const struct dw_die *formal,
					 uint32_t guess)
{
	dw_off origin = dw_origin_of(formal);
	return guess < f->n && origin == f->die[guess] ? guess
						       : site_search_formal(f, formal, origin);
}

/* Whether an address is in a site's own code. */
static inline bool site_has_code(const struct built_site *b, uint64_t at)
{
	for (uint32_t i = 0; i < b->n_ranges; i++)
		if (b->ranges[i].lo.v <= at && at < b->ranges[i].hi.v)
			return true;
	return false;
}

/* The hazard of a probe at @at, in the worker's container. */
enum cairn_hazard site_hazard(const struct site_env *env, struct site_worker *w,
			      struct cairn_vaddr at);

/* foo.constprop.0, foo.isra.0: parameters were removed or split; also a body without a symbol. */
bool site_is_clone(const struct site_env *env, const struct cairn_site *s);

/* A body that a bare walk leaves out, see site_env. */
bool site_is_plain_body(const struct site_env *env, const struct cairn_site *s);

/*
 * The address at which an out-of-line body begins. Returns 1 and *@ret; 0 for one without code;
 * -EBADMSG.
 */
int site_entry_of(const struct dw_die *body, struct cairn_vaddr *ret);

#endif
