/* SPDX-License-Identifier: BSD-2-Clause */
/* The facts that had to be deduced to lay a compiled struct out for another ABI. */

#include <cairn/text.h>

#include "json.h"
#include "layout.h"
#include "say.h"

/* Phrases, each handed to @put. */
static void for_phrases(const struct cairn_deduced *d, void (*put)(void *ctx, const char *text),
			void *ctx)
{
	char text[96];
	const struct {
		unsigned int n;
		const char *format;
	} phrases[] = {
		{d->packed, "packed"},
		{d->pack, "#pragma pack(%u)"},
		{d->aligned, "aligned(%u)"},
	};
	const struct {
		unsigned int n;
		const char *one, *how;
	} counts[] = {
		{d->n_aligned, "member", "aligned"},
		{d->n_packed, "member", "packed"},
		{d->n_fillers, "hole", "without a name"},
		{d->n_deduced_members, "member", "of a deduced layout"},
	};

	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++) {
		if (!phrases[i].n)
			continue;
		snprintf(text, sizeof(text), phrases[i].format, phrases[i].n);
		put(ctx, text);
	}
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		if (!counts[i].n)
			continue;
		snprintf(text, sizeof(text), "%s %s",
			 cairn_counted(counts[i].n, counts[i].one).text, counts[i].how);
		put(ctx, text);
	}
}

static void print_phrase(void *ctx, const char *text)
{
	bool *any = ctx;

	say(stdout, "%s%s", *any ? ", " : "/* deduced from the offsets: ", text);
	*any = true;
}

static bool deduced(const struct layout_source *source, uint32_t id, struct cairn_deduced *ret)
{
	return source->retarget && cairn_retarget_deduced(source->retarget, id, ret);
}

void layout_print_deduced(const struct layout_source *source, uint32_t id)
{
	struct cairn_deduced d;
	bool any = false;

	if (!deduced(source, id, &d))
		return;
	for_phrases(&d, print_phrase, &any);
	if (any)
		puts(" */");
	if (d.unexplained)
		puts("/* a guess: no attributes explain the offsets that it was compiled with */");
	else if (d.n_guessed_members)
		puts("/* a guess: so is the layout of a member */");
}

static void put_phrase(void *ctx, const char *text)
{
	json_text(ctx, NULL, text);
}

void layout_json_deduced(struct json *j, const struct layout_source *source, uint32_t id)
{
	struct cairn_deduced d;

	if (!deduced(source, id, &d))
		return;
	json_open(j, "deduced", '[');
	for_phrases(&d, put_phrase, j);
	json_close(j);
	json_bool(j, "guess", d.unexplained || d.n_guessed_members);
}
