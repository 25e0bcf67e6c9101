/* SPDX-License-Identifier: BSD-2-Clause */
/* The types that DWARF defines, as a provider lists them. */
#include "source/source_impl.h"

#include <errno.h>

#include "dwarf/dwarf.h"

/* A reader's list of DIEs becomes ids. */
struct listing {
	struct dw_types *reader;
	source_visitor *visit;
	void *ctx;
};

static int list_one(void *ctx, dw_off off, struct cairn_err *err)
{
	const struct listing *l = ctx;
	uint32_t id;
	int rc = dwarf_type(l->reader, off, &id, err);

	return rc < 0 && rc != -EBADMSG ? rc : l->visit(l->ctx, id, err);
}

static int list_dwarf(void *provider, bool typedefs, source_visitor *visit, void *ctx,
		      struct cairn_err *err)
{
	const struct cairn_source *s = provider;
	struct listing l = {s->reader, visit, ctx};

	return typedefs ? dwarf_type_typedefs(s->reader, list_one, &l, err)
			: dwarf_type_definitions(s->reader, list_one, &l, err);
}

struct locals {
	struct dw_types *reader;
	source_local_visitor *visit;
	void *ctx;
};

static int list_local(void *ctx, dw_off off, const char *name, struct cairn_err *err)
{
	const struct locals *l = ctx;
	uint32_t id;
	int rc = dwarf_type(l->reader, off, &id, err);

	return rc < 0 && rc != -EBADMSG ? rc : l->visit(l->ctx, id, name, err);
}

static int list_locals_of_dwarf(void *provider, source_local_visitor *visit, void *ctx,
				struct cairn_err *err)
{
	const struct cairn_source *s = provider;
	struct locals l = {s->reader, visit, ctx};

	return dwarf_type_locals(s->reader, NULL, list_local, &l, err);
}

static int complete_dwarf(void *provider, uint32_t id, struct cairn_err *err)
{
	return dwarf_type_complete(((const struct cairn_source *)provider)->reader, id, err);
}

static const char *shortened_dwarf(void *provider)
{
	return cairn_binary_shortened(dwarf_binary(((const struct cairn_source *)provider)->dw));
}

/* The source has it all. */
static void close_dwarf(void *provider)
{
}

const struct source_ops source_dwarf_ops = {.list = list_dwarf,
					    .list_locals = list_locals_of_dwarf,
					    .complete = complete_dwarf,
					    .shortened = shortened_dwarf,
					    .close = close_dwarf};
