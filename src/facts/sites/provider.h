/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The providers of cairn/sites.h: the debug information (sites.c), a sidecar made of it
 * (src/store/sidecar), or BTF (src/store/btfsites)
 *
 * Each provider fills in a struct cairn_sites at the start of its own struct, and its operations.
 * The public functions in provider.c only pass calls on. So no caller, and no other file, depends
 * on which of them it is. The contracts of functions with these names are in cairn/sites.h.
 */
#ifndef SITES_PROVIDER_H
#define SITES_PROVIDER_H

#include <cairn/lines.h>
#include <cairn/sites.h>

struct site_globals;

typedef int sites_visitor(void *ctx, const struct cairn_function *function);

struct sites_ops {
	void (*close)(struct cairn_sites *sites);
	size_t (*missing)(const struct cairn_sites *sites, const char **ret);
	int (*complete_type)(struct cairn_sites *sites, uint32_t id, struct cairn_err *err);
	int (*find)(struct cairn_sites *sites, const char *spec, struct cairn_function_list *ret,
		    struct cairn_err *err);
	int (*visit)(struct cairn_sites *sites, const char *pattern, sites_visitor *visit,
		     void *ctx, struct cairn_err *err);
	int (*suggest)(struct cairn_sites *sites, const char *spec, const char **ret, size_t max,
		       struct cairn_err *err);
	bool (*imports)(const struct cairn_sites *sites, const char *name);
	int (*at)(struct cairn_sites *sites, struct cairn_vaddr pc, bool is_exact,
		  const struct cairn_scope **ret, struct cairn_err *err);
	int (*passed)(struct cairn_sites *sites, struct cairn_vaddr callee,
		      struct cairn_vaddr caller_pc, const struct cairn_loc_step *asked,
		      struct cairn_location *ret, struct cairn_err *err);
	/* NULL: the provider has no lines of functions */
	int (*lines)(struct cairn_sites *sites, const char *spec, struct cairn_lines *ret,
		     struct cairn_err *err);
	int (*vars)(struct cairn_sites *sites, const struct cairn_line *line,
		    struct cairn_variables *ret, struct cairn_err *err);
	/* globals.h. NULL: the provider has no variables of files */
	int (*globals)(struct cairn_sites *sites, const char *name, struct site_globals *ret,
		       struct cairn_err *err);
	bool (*symbol)(struct cairn_sites *sites, struct cairn_vaddr at, char *name, size_t size);
};

struct cairn_sites {
	const struct sites_ops *ops;
	const struct cairn_binary *bin;
	struct cairn_types *graph;
};

/*
 * The operation "symbol" of a provider whose binary is open: by the symbols of its debug file, or
 * its own.
 */
bool sites_symbol_of_binary(struct cairn_sites *sites, struct cairn_vaddr at, char *name,
			    size_t size);

/* The same by some symbols in the order of elf_symbols(): all that begin shortly before @at. */
struct elf_symbol;
bool sites_symbol_among(const struct elf_symbol *symbols, size_t n, struct cairn_vaddr at,
			char *name, size_t size);

/* Sets n_shared of a function's sites, which are in order of their addresses. */
void sites_count_shared(struct cairn_site *sites, uint32_t n);

struct dwarf;
struct dw_func_index;
struct dw_types;

/*
 * sites_open_shared - cairn_sites_open() of debug information that the caller has open
 *
 * @dw         borrowed until cairn_sites_close()
 * @functions  the index of all of its functions; becomes the sites', also after an error. Empty:
 *             made by the first question that needs it.
 */
int sites_open_shared(const struct dwarf *dw, struct dw_func_index *functions,
		      const struct cairn_sites_opts *opts, struct cairn_sites **ret,
		      struct cairn_err *err);

/*
 * The reader that fills the graph of sites that are answered by the debug information. Borrowed
 * until cairn_sites_close().
 */
struct dw_types *sites_type_reader(const struct cairn_sites *sites);

struct site_env;

/*
 * The environment that evaluates sites, without an index of functions. False: another provider than
 * the debug information answers.
 */
bool sites_debug_info(struct cairn_sites *sites, struct site_env *ret);

/*
 * sites_all_functions - the environment that evaluates sites, with the index of all functions; for
 * sites of the debug information
 *
 * Returns 0 and *@ret, which is borrowed until cairn_sites_close(); -EBADMSG, -ENOMEM. Cost: the
 * first time, reads all DIEs.
 */
int sites_all_functions(struct cairn_sites *sites, struct site_env *ret, struct cairn_err *err);

#endif
