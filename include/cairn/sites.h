/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sites: the addresses at which the functions of a binary begin
 *
 * An optimising compiler turns one function into many sites: its out-of-line body, clones of it,
 * and a copy at each call that was inlined. All of them are sites of one function, and each has its
 * own locations for the arguments.
 *
 *	struct cairn_sites *sites;
 *	struct cairn_function_list found;
 *	if (cairn_sites_open(bin, NULL, &sites, &err) < 0 ||
 *	    cairn_sites_find(sites, "tcache_get", &found, &err) < 0)
 *		return fail(err.msg);
 *	for (uint32_t i = 0; found.n == 1 && i < found.p[0]->n_sites; i++)
 *		show(&found.p[0]->sites[i]);
 *	cairn_sites_close(sites);
 *
 * Functions with the same name and the same declaration (file and line) are one function, in
 * however many units it was compiled. Nothing here needs a process or privileges; trace.h traces
 * the sites.
 *
 * A tracer of its own finds the steps to an argument in location.h, the functions at an address in
 * sidecar.h (cairn_sidecar_frames()), and both as records of BTF in btf.h (cairn_btf_loc_param()).
 * A sidecar gives a struct cairn_sites in no time, without the debug information:
 * cairn_sidecar_sites().
 */
#ifndef CAIRN_SITES_H
#define CAIRN_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/addr.h>
#include <cairn/api.h>
#include <cairn/binary.h>
#include <cairn/err.h>
#include <cairn/hazards.h>
#include <cairn/location.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

struct cairn_sites;

enum cairn_site_kind {
	CAIRN_SITE_OUT_OF_LINE, /* an out-of-line body: the function itself, or a clone of it */
	/*
	 * A copy in another function. If the compiler duplicated its code afterwards (an unrolled
	 * loop), the copy has one DIE and several entries. Each entry is a site; all but the first
	 * have the rule CAIRN_AT_ENTRY_ROW.
	 */
	CAIRN_SITE_INLINED,
	/*
	 * The split-off rest of a function (GCC's foo.part.N), entered by a call from a copy of
	 * foo's head; as a body, or inlined in turn. Reaching it is not another call of foo, so it
	 * is listed and not counted.
	 */
	CAIRN_SITE_PART,
	/*
	 * An instruction that is no beginning of a function: a USDT probe, a line, an offset. Only
	 * probes of trace.h have such sites.
	 */
	CAIRN_SITE_PLACE,
};

/* The source of the address; docs/address.md explains the rule. */
enum cairn_address_rule {
	CAIRN_AT_LOW_PC,      /* start of the only range */
	CAIRN_AT_ENTRY_PC,    /* DW_AT_entry_pc */
	CAIRN_AT_FIRST_RANGE, /* start of the first range in the input's order */
	/*
	 * the copy has no entry; the only CFG entry: the one instruction that other code leads to
	 * first
	 */
	CAIRN_AT_CFG_ENTRY,
	/* an extra entry row in the line table: the compiler duplicated the copy */
	CAIRN_AT_ENTRY_ROW,
	CAIRN_AT_SYMBOL, /* no debug information: the address of a symbol */
	/* BTF has the address and does not record the rule (cairn/btf/sites.h) */
	CAIRN_AT_BTF,
	CAIRN_AT_GIVEN, /* of a CAIRN_SITE_PLACE: a note, a row of the line table, an offset */
};

/*
 * Caveats: why the number of events at a site may differ from the number of calls. A set of bits;
 * docs/address.md explains each. A site without any is hit once by each call, as far as the code
 * and the debug information show.
 */
enum cairn_count_caveat {
	/*
	 * the compiler lost the entry: the address is the copy's first instruction, which may have
	 * been moved
	 */
	CAIRN_COUNT_NO_ENTRY = 1 << 0,
	/* the copy's own code leads back to its entry: one call may hit the site more than once */
	CAIRN_COUNT_LOOPED = 1 << 1,
	/* some calls may bypass the site: n_bypasses edges lead into the copy past its sites */
	CAIRN_COUNT_BYPASSED = 1 << 2,
	/*
	 * the copy has no code at its entry: the caller's code may hit the address without a call
	 */
	CAIRN_COUNT_SHARED_PC = 1 << 3,
	/* merged with another call of the same function, and counted at that call's site */
	CAIRN_COUNT_MERGED = 1 << 4,
	/*
	 * reached before the call's condition is tested: may be hit without a call
	 */
	CAIRN_COUNT_BEFORE_TEST = 1 << 5,
	/* the linker kept one body for several functions: calls of the others hit it, too */
	CAIRN_COUNT_FOLDED = 1 << 6,
	/* vector instructions in the copy: one hit may be several calls */
	CAIRN_COUNT_VECTORISED = 1 << 8,
	/*
	 * a body that calls itself and begins with a loop: some of these calls may be jumps into it
	 */
	CAIRN_COUNT_RECURSION = 1 << 7,
	/*
	 * not checked: BTF does not record the extent of a copy (cairn/btf/sites.h). Any caveat
	 * above may apply.
	 */
	CAIRN_COUNT_UNKNOWN = 1 << 9,
};

/* A sentence for people, and a word for programs ("no-entry"). Static; @caveat is one bit. */
const char *cairn_count_caveat_text(enum cairn_count_caveat caveat);
const char *cairn_count_caveat_id(enum cairn_count_caveat caveat);

/* One argument at one site. */
struct cairn_arg {
	const char *name; /* NULL for an unnamed parameter */
	uint32_t type;    /* in cairn_sites_types() */
	struct cairn_location loc;
};

/* A call that was inlined: @function's code replaces the call at FILE:LINE:COLUMN. */
struct cairn_inlined_call {
	const char *function;
	const char *call_file; /* NULL when unknown */
	uint32_t call_line;    /* 0 when unknown; so is the column */
	uint32_t call_column;
};

struct cairn_site {
	enum cairn_site_kind kind;
	enum cairn_address_rule rule;
	struct cairn_vaddr at;
	struct cairn_foff off; /* in the binary; valid when has_off */
	bool has_off;
	enum cairn_hazard hazard;
	/*
	 * The symbol whose code this is, and the distance from its start: for an out-of-line body
	 * the body's own name with its clone suffix ("foo.constprop.0"). NULL when no symbol covers
	 * it.
	 */
	const char *symbol;
	uint64_t symbol_off;
	/*
	 * The containing out-of-line function as DWARF names it, and the distance from its entry.
	 */
	const char *container;
	int64_t container_off;
	/*
	 * Inlined: from this copy outwards; chain[0] is the call of the function itself, made in
	 * chain[1].function, or in container when there is no chain[1].
	 */
	uint32_t n_chain;
	const struct cairn_inlined_call *chain;
	/* The number of the function's parameters, in the order of its declaration. */
	uint32_t n_args;
	const struct cairn_arg *args;
	/* Sites of the same function at the same address, this one included: 1 when it is alone. */
	uint32_t n_shared;
	uint32_t count_caveats; /* the enum cairn_count_caveat bits that apply */
	/* the number of the copy's instructions at which it is entered, other than its sites */
	uint32_t n_bypasses;
	/* The offset of its DIE in .debug_info, for a search with readelf or llvm-dwarfdump. */
	uint64_t die;
	/*
	 * Identifies the out-of-line function that holds the site. Clones and same-named functions
	 * of other units have other values. 0: unknown.
	 */
	uint64_t body;
};

struct cairn_param {
	const char *name;
	uint32_t type;
};

struct cairn_function {
	const char *name;         /* C++: qualified */
	const char *linkage_name; /* NULL if it is the same or unknown */
	const char *decl_file;    /* NULL when unknown */
	uint32_t decl_line;
	uint32_t return_type; /* 0: void */
	bool variadic;
	/*
	 * The function may have parameters and a result, but the debug information does not
	 * describe them. It is assembler code, or compiled with -g1 or -gline-tables-only, or only
	 * the symbol table has it. n_params is 0.
	 */
	bool params_unknown;
	uint32_t n_params;
	const struct cairn_param *params;
	/*
	 * Sorted by address; at one address in the order in which the calls begin, as far as the
	 * compiler records it.
	 */
	uint32_t n_sites;
	const struct cairn_site *sites;
	/*
	 * Inlined copies whose DIE has no code: they cannot be probed, and are counted so that all
	 * copies are accounted for.
	 */
	uint32_t n_without_code;
};

/* How a list of functions was found. */
enum cairn_found {
	CAIRN_FOUND_NAME,    /* all have the name; several: the name is ambiguous */
	CAIRN_FOUND_PATTERN, /* all match the pattern */
	/* the name is a symbol, and they begin at its address: malloc, __libc_malloc */
	CAIRN_FOUND_SYMBOL,
	/* the name is an indirect function's; these are its implementations */
	CAIRN_FOUND_INDIRECT,
};

struct cairn_function_list {
	size_t n;
	const struct cairn_function *const *p;
	enum cairn_found found; /* no meaning if n is 0, except: */
				/*
	 * CAIRN_FOUND_INDIRECT with n 0: the implementations are not known, and the resolver is not
	 * the function.
	 */
};

struct cairn_sites_opts {
	size_t size;          /* sizeof(struct cairn_sites_opts) */
	unsigned int threads; /* 0: one per processor */
	/*
	 * Use a parameter's value at a site as the call's argument even if the debug information
	 * (mostly Clang's) does not show whether the function has changed it already. Debuggers
	 * show that value. If false, such a value is CAIRN_UNAVAIL_MAY_HAVE_CHANGED or
	 * CAIRN_UNAVAIL_MAY_NOT_BE_PASSED.
	 */
	bool assume_unmodified;
};

/*
 * cairn_sites_open - prepare to query a binary's functions
 *
 * @bin   must outlive the result
 * Returns 0, or negative:
 *   -ENODATA     no debug information (err: where it was searched, how to get it)
 *   -EBADMSG     damaged
 *   -EOPNOTSUPP  a DWARF or ELF form that is not known
 *   -ENOMEM
 * Cost: unit headers only. Threads: one at a time per handle.
 */
int cairn_sites_open(const struct cairn_binary *bin, const struct cairn_sites_opts *opts,
		     struct cairn_sites **ret, struct cairn_err *err);
void cairn_sites_close(struct cairn_sites *sites);

const struct cairn_binary *cairn_sites_binary(const struct cairn_sites *sites);

/*
 * cairn_sites_missing - the .dwo files (split DWARF) that were not found: the sites that they
 * describe are in no result
 *
 * @ret  the names of the first few, where they were searched and why each candidate was refused; a
 *       line each, "" if none is missing. Borrowed until close.
 * Returns their number.
 */
size_t cairn_sites_missing(const struct cairn_sites *sites, const char **ret);

/* The graph of all type ids in results; it grows with later queries, and ids stay valid. */
const struct cairn_types *cairn_sites_types(const struct cairn_sites *sites);

/*
 * cairn_sites_complete_type - read the parts of a type
 *
 * The types in results are read as far as their names need. This call reads members and enumerators
 * of the type itself and of all that it contains, but not of the types that its pointers point to.
 * Call it before a value of the type is printed, or a member looked up.
 * Returns 0, also if it is defined nowhere: it then stays a declaration. -EBADMSG, -ENOMEM.
 */
int cairn_sites_complete_type(struct cairn_sites *sites, uint32_t id, struct cairn_err *err);

/*
 * cairn_sites_find - the functions of a name, with all their sites
 *
 * @spec  NAME, or FILE:NAME where FILE is the end of the declaring file's path ("malloc.c",
 *        "glibc/malloc/malloc.c"), or FILE:LINE:NAME. NAME is the source name, a qualified C++ name
 *        or any tail of one ("size", "vector<int>::size"), the same without template arguments
 *        ("vector::size"), or a linkage name. It may be a symbol's name, which stands for the
 *        functions that begin at the symbol's address. With * or ? in it NAME is a pattern, as for
 *        file names, over these and, without FILE, over symbols' names.
 * @ret   borrowed until cairn_sites_close(); ret->found says how to read several functions
 * Returns their number, 0 if none matched (ret->n is 0). -E2BIG: the pattern matches more than
 * CAIRN_FIND_MAX functions; cairn_sites_visit_matching() has no such limit. Errors as
 * cairn_sites_open().
 * Cost: one parallel pass over all DIEs; two for a pattern, and for a name that is only a symbol's.
 */
#define CAIRN_FIND_MAX 16384
int cairn_sites_find(struct cairn_sites *sites, const char *spec, struct cairn_function_list *ret,
		     struct cairn_err *err);

/*
 * cairn_sites_visit - every function that has a site, in order of declaration file, line and name
 *
 * @visit  gets each function once; the data that it points to is freed after the call, unlike that
 *         of cairn_sites_find(). A result other than 0 ends the walk and is returned.
 * Returns 0, the result of @visit, or an error as above.
 * Cost: everything is evaluated, in parallel; memory for the index plus one batch of functions.
 */
int cairn_sites_visit(struct cairn_sites *sites,
		      int (*visit)(void *ctx, const struct cairn_function *function), void *ctx,
		      struct cairn_err *err);

/*
 * The same for the functions that @pattern matches, by the rules of cairn_sites_find(); NULL: all
 * functions of the debug information.
 */
int cairn_sites_visit_matching(struct cairn_sites *sites, const char *pattern,
			       int (*visit)(void *ctx, const struct cairn_function *function),
			       void *ctx, struct cairn_err *err);

/* True if NAME in @spec is a pattern. "operator*" and "f<int *>" are names. */
bool cairn_sites_is_pattern(const char *spec);

/*
 * cairn_sites_spec_hint - what a name that was not found may mean to users of other tools
 *
 * "file.c:7" is a line to gdb, "f%return" a return to perf, "f+0x10" an address in a function.
 * @buf, @size  as snprintf: always terminated; a sentence without a full stop
 * Returns the length that was needed; 0: nothing is known of it. Any thread.
 */
size_t cairn_sites_spec_hint(const char *spec, char *buf, size_t size);

/*
 * cairn_sites_suggest - names of functions near to a name that was not found
 *
 * @ret   up to @max names, nearest first; borrowed until close
 * Returns their number, or an error.
 */
int cairn_sites_suggest(struct cairn_sites *sites, const char *spec, const char **ret, size_t max,
			struct cairn_err *err);

/*
 * cairn_sites_imports - whether the binary takes a function or variable of that name from a shared
 * library
 *
 * As cairn_binary_imports(), which cannot answer for a sidecar. Cost: one pass over .dynsym, or
 * O(log names).
 */
bool cairn_sites_imports(const struct cairn_sites *sites, const char *name);

/* ---- the functions that an address is in ---- */

/* A function that an address is in, with its parameters at that address. */
struct cairn_scope {
	const char *name; /* as the source has it; NULL when unknown */
	bool is_inlined;
	uint32_t n_args;
	const struct cairn_arg *args;
};

/*
 * cairn_sites_at - the functions that an address is in, innermost first, and the locations of their
 * parameters when a program is stopped there
 *
 * The locations are those of the parameters' current values; a function may have changed its
 * arguments. Registers and memory are those of the frame at that address: cairn_stacks_value()
 * (cairn/stack.h) reads them. A parameter in a vector register (17 to 32) is available here.
 *
 * @pc        the instruction that is to run next; for an outer frame the one after its call
 * @is_exact  @pc is in the function itself; otherwise @pc follows a call, and the byte before it is
 * @ret       borrowed until the next call of this function, or close
 * Returns their number; 0 if the debug information has no function there. -EOPNOTSUPP from a
 * sidecar that was made without cairn_sidecar_make_opts.args, or was opened without its binary;
 * -ESTALE from a sidecar of other code; -EBADMSG, -ENOMEM.
 * Cost: the first call lists all functions, and with a sidecar hashes all code; later calls take
 * some microseconds for each function.
 */
int cairn_sites_at(struct cairn_sites *sites, struct cairn_vaddr pc, bool is_exact,
		   const struct cairn_scope **ret, struct cairn_err *err);

/*
 * cairn_sites_call_value - the value that a caller passed to a function on the stack
 *
 * @callee  an address in the function; @caller_pc: its return address. Both are of adjacent frames
 * @asked   a step of a location: CAIRN_LOC_ENTRY_REG, or CAIRN_LOC_ENTRY_PARAM
 * @ret     a value in the caller's frame. CAIRN_UNAVAIL_ENTRY_VALUE unless the caller calls the
 *          function directly and no tail call can re-enter it. Borrowed as the result of
 *          cairn_sites_at() before it
 * Returns 0; errors as cairn_sites_at(). Cost: decodes the function.
 */
int cairn_sites_call_value(struct cairn_sites *sites, struct cairn_vaddr callee,
			   struct cairn_vaddr caller_pc, const struct cairn_loc_step *asked,
			   struct cairn_location *ret, struct cairn_err *err);

/*
 * The name of the variable or function at a link-time address, for cairn_location_text(); @ctx is
 * the sites.
 */
bool cairn_sites_symbol(void *ctx, struct cairn_vaddr at, char *name, size_t size);

CAIRN_END_DECLS
#endif
