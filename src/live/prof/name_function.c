/* SPDX-License-Identifier: BSD-2-Clause */
/* Common to all that name frames: how a function is shown, and notes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prof/name_impl.h"

int prof_names_add_note(struct prof_names *names, const char *text)
{
	const char *own;

	for (size_t i = 0; i < names->notes.n; i++)
		if (!strcmp(names->notes.p[i], text))
			return 0;
	own = arena_strdup(&names->arena, text);
	return own && VEC_ADD(&names->notes, own) ? 0 : -ENOMEM;
}

/* Room for a name of @size bytes and its end. */
static bool have_room(struct prof_names *names, size_t size)
{
	char *grown;

	if (size < names->shown_size)
		return true;
	grown = realloc(names->shown, size + 1);
	if (!grown)
		return false;
	names->shown = grown;
	names->shown_size = size + 1;
	return true;
}

const char *shown_function(struct prof_names *names, const char *linkage, const char *name)
{
	size_t (*show)(const char *, const char *, char *, size_t) = names->opts->show_name;
	size_t size;

	if (!show)
		return name ? name : linkage;
	if (!have_room(names, 255))
		return NULL;
	size = show(linkage, name, names->shown, names->shown_size);
	if (size < names->shown_size)
		return names->shown;
	if (!have_room(names, size))
		return NULL;
	show(linkage, name, names->shown, names->shown_size);
	return names->shown;
}

int add_plain_function(struct naming *n, const char *linkage, const char *name, uint32_t *ret,
		       struct cairn_err *err)
{
	struct cairn_profile_function f = {.name = shown_function(n->names, linkage, name),
					   .linkage_name = linkage};

	if (!f.name)
		return err_nomem(err, "a function's name");
	return cairn_profile_add_function(n->p, &f, ret, err);
}
