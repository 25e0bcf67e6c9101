/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the verb layout. */
#ifndef CLI_LAYOUT_H
#define CLI_LAYOUT_H

#include <cairn/sidecar.h>
#include <cairn/layout/retarget.h>
#include <cairn/source.h>

#include "btf.h"
#include "cmd.h"
#include "sidecar.h"

/* More than there are. */
enum { ABIS_MAX = 32 };

struct layout_values {
	struct opt_list bases, include_dirs, defines;
	const char *abi, *contains;
	unsigned long holes, cacheline;
	bool running, btf, sizes, packable, expand, hex, json;
	struct sidecar_wish wish;
	/* Two layouts compared. */
	const char *against, *lock;
	struct opt_list ignore;
	bool check, diff, update;
	/* --reorganize */
	struct opt_list together;
	const char *weights;
	bool reorganize, verify, pin_first, merge_bit_fields, lines_first;
	bool via_compiler;
	/* --lint */
	const char *rules;
	bool lint;
	/* --html */
	const char *beside;
	bool html;
};

/* How a file of types is opened: options at the members of the struct layout_values at @at. */
/* clang-format off */
#define LAYOUT_OPTS_FILE(at) \
	BTF_OPT_BASE((at) + offsetof(struct layout_values, bases)), \
	{0, "btf", OPT_FLAG, NULL, (at) + offsetof(struct layout_values, btf), \
	 "BTF, even if FILE has DWARF"}, \
	SIDECAR_OPTS((at) + offsetof(struct layout_values, wish)), \
	{'I', "include", OPT_LIST, "DIR", (at) + offsetof(struct layout_values, include_dirs), \
	 "a directory of C headers; may be repeated"}, \
	{'D', "define", OPT_LIST, "NAME[=VALUE]", (at) + offsetof(struct layout_values, defines), \
	 "a macro that C sees; may be repeated"}
/* clang-format on */

/* A file of types, and the BTF that its own is split from. */
struct layout_source {
	struct cairn_source *source;
	struct cairn_binary *bin;   /* NULL: declarations, or BTF that is in no binary */
	struct cairn_sidecar *pack; /* NULL: no sidecar answers */
	struct sidecar_wish wish;
	struct btf_chain bases;
	bool has_bases;
	struct cairn_retarget *retarget; /* NULL: its types are unchanged */
	const struct cairn_abi *abi;     /* with @retarget: for which */
};

/* ---- layout_open.c ---- */

/* The file is C: NAME.h, NAME.c, or NAME.i, which has been preprocessed. */
bool layout_is_c(const char *path);
/*
 * It holds declarations: C, or another language's. They are laid out here; other files were when
 * they were compiled.
 */
bool layout_is_text(const char *path);

/* A file of text, whole; an exit status. *@ret: free(). */
int layout_read_text(const char *path, char **ret, size_t *ret_size);

/*
 * layout_open - open a file of types; C is preprocessed when it needs to be, and laid out for @abi
 *
 * @abi  of C; NULL: x86-64
 * Returns an exit status. layout_close() also after a failure.
 */
int layout_open(const char *path, const struct cairn_abi *abi, const struct layout_values *values,
		struct layout_source *ret);
void layout_close(struct layout_source *source);

/* The types of all patterns, all of the file's when there are none; an exit status. */
int layout_select(struct cairn_source *source, char *const *patterns, size_t n_patterns,
		  struct cairn_source_list *ret);
/*
 * The types of a name, also those that have no members (cairn_source_select_value()); an exit
 * status.
 */
int layout_select_value(struct cairn_source *source, const char *name,
			struct cairn_source_list *ret);

/*
 * layout_retarget - lay types that were compiled out for another ABI
 *
 * Does nothing to declarations, and where it is the ABI that they were compiled for. Returns an
 * exit status.
 */
int layout_retarget(struct layout_source *source, const struct cairn_abi *abi,
		    const struct cairn_source_list *list);
/* The types, and their ABI (NULL: not known), after that. */
const struct cairn_types *layout_types(const struct layout_source *source);
const struct cairn_abi *layout_abi(const struct layout_source *source);

/* ---- layout_deduced.c ---- */

struct json;

/* With which attributes a compiled struct was laid out for another ABI; nothing when it was not. */
void layout_print_deduced(const struct layout_source *source, uint32_t id);
/* "deduced" and "guess": docs/json.md. */
void layout_json_deduced(struct json *j, const struct layout_source *source, uint32_t id);

/* ---- layout_preprocess.c, layout_compile.c ---- */

struct compiler_words;

/* -I, -D and the language, as any compiler of C takes them. */
void layout_c_words(struct compiler_words *w, const struct layout_values *values);

/* The preprocessor's output for @path and @abi; an exit status. *@ret: free(). */
int layout_preprocess(const char *path, const struct cairn_abi *abi,
		      const struct layout_values *values, char **ret, size_t *ret_size);

/*
 * Has clang lay out all types of @path for @abi, and write them into @out, an x86-64 object file
 * whose debug information has nothing else; an exit status.
 */
int layout_compile(const char *path, const struct cairn_abi *abi,
		   const struct layout_values *values, const char *out);

/* ---- layout_json.c: docs/json.md ---- */

/* 0; -ENOMEM. */
int layout_json(const struct layout_source *file, struct cairn_layout *layout, uint32_t id,
		bool expand);

/* ---- layout_compare.c ---- */

/*
 * The types that @patterns name, on the first ABI and on each of the others; an exit status:
 * STATUS_NO when any differs.
 */
int layout_compare(const char *path, const struct cairn_abi *const *abis, size_t n_abis,
		   const struct layout_values *values, char *const *patterns, size_t n_patterns);

/* --diff: the operands are OLD NEW [TYPE...]. */
int layout_diff(const struct cairn_abi *abi, const struct layout_values *values,
		const struct operands *operands);

/* ---- layout_check.c, layout_lock.c ---- */

/* --check FILE --against DECLS; @n_abis of the consumer, 0: x86-64. */
int layout_check(const char *path, const struct cairn_abi *const *abis, size_t n_abis,
		 const struct layout_values *values, char *const *patterns, size_t n_patterns);
/* --lock FILE: STATUS_NO when a layout is not the one that is locked. */
int layout_lock(const char *path, const struct cairn_abi *abi, const struct layout_values *values,
		char *const *patterns, size_t n_patterns);

/* "struct event"; a typedef's own name. */
const char *layout_kind(const struct cairn_types *types, uint32_t id);

/* An open file of types, and how they are looked at. */
struct layout_run {
	const struct layout_values *values;
	const struct cairn_source *source;
	const struct cairn_types *types;
	struct cairn_layout *layout;
};

/* ---- layout_lint.c ---- */

/* --lint: an exit status; STATUS_NO when a rule found something. */
int layout_lint(const struct layout_run *run, const struct cairn_source_list *list);

/* ---- layout_html.c ---- */

/*
 * --html: the types that @patterns name as a page, on two ABIs or of two files side by side; an
 * exit status.
 */
int layout_html(const char *path, const struct cairn_abi *const *abis, size_t n_abis,
		const struct layout_values *values, char *const *patterns, size_t n_patterns);

/* ---- layout_reorganize.c, layout_weights.c, layout_verify.c ---- */

/* --reorganize: an exit status; STATUS_NO when a compiler does not agree. */
int layout_reorganize(const struct layout_run *run, const struct cairn_source_list *list);

struct layout_hits {
	char *type; /* NULL: of any */
	char *member;
	uint64_t hits;
};

struct layout_weights {
	struct layout_hits *items;
	size_t n, cap;
};

/* An exit status; layout_weights_free() also after a failure. @ret is zeroed before. */
int layout_weights_read(const char *path, struct layout_weights *ret);
void layout_weights_free(struct layout_weights *w);
uint64_t layout_weight(const struct layout_weights *w, const char *type, const char *member);

/*
 * layout_verify - let the compilers for an ABI compile text that asserts something
 *
 * @abi  NULL: this machine's
 * @ret  the names of those that agreed
 * Returns an exit status: STATUS_NO when one does not agree, STATUS_NOT_HERE when there is none.
 */
int layout_verify(const char *text, const struct cairn_abi *abi, char *ret, size_t size);

#endif
