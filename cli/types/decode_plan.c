/* SPDX-License-Identifier: BSD-2-Clause */
/* A plan of decoding as the options of the command line say, and where its text goes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"

/* ---- which arms ---- */

/* UNION=ARM[:MEMBER=VALUE], cut in place. */
static bool parse_choice(char *text, struct cairn_value_arm *ret)
{
	char *arm = strchr(text, '='), *when = arm ? strchr(arm + 1, ':') : NULL;
	char *value = when ? strchr(when + 1, '=') : NULL;

	if (!arm || !arm[1] || arm[1] == ':' ||
	    (when && (!value || value == when + 1 || !value[1])))
		return false;
	*ret = (struct cairn_value_arm){.of = text, .arm = arm + 1};
	*arm = 0;
	if (!when)
		return true;
	*when = *value = 0;
	ret->when = when + 1;
	ret->value = value + 1;
	return true;
}

struct choices {
	struct cairn_value_arm *arms;
	char **texts;
	size_t n;
};

static void choices_fini(struct choices *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->texts[i]);
	free(c->texts);
	free(c->arms);
}

static int parse_choices(const struct opt_list *list, struct choices *ret)
{
	*ret = (struct choices){.arms = calloc(list->n + 1, sizeof(*ret->arms)),
				.texts = calloc(list->n + 1, sizeof(*ret->texts))};
	if (!ret->arms || !ret->texts)
		return fail(STATUS_NOT_HERE, "no memory");
	for (size_t i = 0; i < list->n; i++) {
		ret->texts[i] = strdup(list->items[i]);
		ret->n++;
		if (!ret->texts[i])
			return fail(STATUS_NOT_HERE, "no memory");
		if (!parse_choice(ret->texts[i], &ret->arms[i]))
			return fail(STATUS_USAGE,
				    "--discriminate %s: write UNION=ARM or UNION=ARM:MEMBER=VALUE",
				    list->items[i]);
	}
	return STATUS_YES;
}

/* ---- the type ---- */

static enum cairn_long_double long_double_of(const struct cairn_abi *abi)
{
	if (!abi || !strcmp(abi->name, "x86-64") || !strcmp(abi->name, "x32") ||
	    !strcmp(abi->name, "i386"))
		return CAIRN_LONG_DOUBLE_X87;
	/*
	 * Two doubles, unless it was built with -mabi=ieeelongdouble, which its types do not tell.
	 */
	return strncmp(abi->name, "ppc64", 5) ? CAIRN_LONG_DOUBLE_QUAD : CAIRN_LONG_DOUBLE_OTHER;
}

int decode_plan(const struct decode_values *values, const struct cairn_types *types, uint32_t id,
		const struct cairn_source *source, struct cairn_decode **ret)
{
	struct cairn_value_opts o = {
		.size = sizeof(o),
		.style = values->json ? CAIRN_VALUE_JSON : CAIRN_VALUE_TEXT,
		.hex = values->hex,
		.max_elems = (uint32_t)values->max_elems,
		.max_depth = 64,
		.padding = values->padding,
		.raw = values->raw,
		.big_endian = source ? cairn_source_is_big_endian(source)
				     : __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
		.long_double = long_double_of(source ? cairn_source_abi(source) : NULL)};
	struct cairn_err err = {0};
	struct choices choices = {0};
	int status = parse_choices(&values->choices, &choices);

	o.arms = choices.arms;
	o.n_arms = choices.n;
	int rc = status ? 0 : cairn_decode_new(types, id, &o, ret, &err);
	choices_fini(&choices);
	return rc < 0 ? fail_err(rc, &err, STATUS_NO) : status;
}

/* ---- the output ---- */

static int write_stdout(void *ctx, const char *text, size_t n)
{
	return fwrite(text, 1, n, stdout) == n ? 0 : -EIO;
}

void decode_out_init(struct cairn_text_out *out)
{
	static char buf[1 << 16];

	*out = (struct cairn_text_out){.buf = buf, .size = sizeof(buf), .flush = write_stdout};
}

void decode_out_finish(struct cairn_text_out *out)
{
	if (out->n && !out->failed)
		out->failed = write_stdout(NULL, out->buf, out->n);
	/* main() notices a full disk or a closed pipe, and reports it. */
}
