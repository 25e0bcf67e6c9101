/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by --abi A,B, --diff, --lock and --check: two sources, pairs of their types, and the
 * differences in a pair.
 */
#ifndef CLI_LAYOUT_COMPARE_H
#define CLI_LAYOUT_COMPARE_H

#include <cairn/layout/compare.h>

#include "json.h"
#include "layout.h"

struct layout_side {
	const char *label; /* its file or ABI, as shown to users */
	struct layout_source source;
	const struct cairn_types *types;
	const struct cairn_abi *abi; /* NULL: not known */
	struct cairn_source_list list;
};

/*
 * layout_open_side - open a source and select its types
 *
 * @abi  laid out for it, also types compiled for another; NULL: unchanged
 * Returns an exit status: STATUS_NO when no type has such a name. layout_close_side() also after a
 * failure.
 */
int layout_open_side(const char *path, const struct cairn_abi *abi,
		     const struct layout_values *values, char *const *patterns, size_t n_patterns,
		     struct layout_side *ret);
void layout_close_side(struct layout_side *side);

/*
 * Calls @each with two types of one name and kind, in the first side's order, then those that only
 * the second has; 0 stands for the one that is missing. The highest exit status of them; one above
 * STATUS_NO ends it.
 */
int layout_for_pairs(const struct layout_side *sides,
		     int (*each)(void *ctx, uint32_t a, uint32_t b), void *ctx);

/*
 * All pairs, printed or as JSON; @word stands between a size and a side's label: "on", "in". An
 * exit status.
 */
int layout_compare_sides(const struct layout_side *sides, const char *word, bool json);

/* One line per change: path, position on both sides, and the change. */
void layout_print_changes(const struct layout_side *sides, const struct cairn_changes *changes);
/* "differing": docs/json.md. @changes may be NULL: none. */
void layout_json_changes(struct json *j, const struct layout_side *sides,
			 const struct cairn_changes *changes);

#endif
