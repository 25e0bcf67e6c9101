/* SPDX-License-Identifier: BSD-2-Clause */
/* Sites of a file where a uprobe is lost or does harm, whichever tool sets it. */
#include <errno.h>
#include <inttypes.h>

#include <cairn/sidecar.h>

#include "cmd.h"
#include "say.h"
#include "sites.h"

struct walk {
	const struct view *view;
	const struct cairn_sidecar *sidecar; /* NULL: symbols are the binary's */
	/* By kind; a kind that this program does not know yet would be counted in the last. */
	uint64_t counts[32];
	uint64_t total;
};

struct site {
	const char *symbol;
	uint64_t symbol_off;
	struct cairn_foff off;
	bool has_symbol, has_off;
};

static struct site site_of(const struct walk *walk, struct cairn_vaddr at)
{
	const struct cairn_binary *bin = walk->view->bin;
	struct site site = {0};
	struct cairn_vaddr start;

	site.has_off = cairn_binary_foff(bin, at, &site.off);
	site.has_symbol = walk->sidecar
				  ? cairn_sidecar_symbol_of(walk->sidecar, at, &site.symbol, &start)
				  : cairn_binary_symbol_of(bin, at, &site.symbol, &start);
	if (site.has_symbol)
		site.symbol_off = at.v - start.v;
	return site;
}

static void put(const struct view *view, struct cairn_vaddr at, const struct site *site,
		enum cairn_hazard hazard)
{
	struct json j = {.out = view->out};

	json_open(&j, NULL, '{');
	json_hex(&j, "addr", at.v);
	if (site->has_off)
		json_hex(&j, "offset", site->off.v);
	else
		json_null(&j, "offset");
	json_text(&j, "symbol", site->has_symbol ? site->symbol : NULL);
	json_uint(&j, "symbol_off", site->symbol_off);
	json_text(&j, "hazard", cairn_hazard_id(hazard));
	json_text(&j, "text", cairn_hazard_text(hazard));
	json_close(&j);
}

static void print(const struct view *view, struct cairn_vaddr at, const struct site *site,
		  enum cairn_hazard hazard)
{
	char address[256];

	view_address(view, at, address, sizeof(address));
	say(view->out, "%-12s", address);
	if (site->has_symbol)
		say(view->out, " %s+0x%" PRIx64, site->symbol, site->symbol_off);
	fprintf(view->out, "  %s%s%s\n", view->style.bad, cairn_hazard_text(hazard),
		view->style.off);
}

static int visit(void *ctx, struct cairn_vaddr at, enum cairn_hazard hazard)
{
	struct walk *walk = ctx;
	struct site site = site_of(walk, at);
	size_t last = sizeof(walk->counts) / sizeof(walk->counts[0]) - 1;

	walk->counts[(size_t)hazard < last ? (size_t)hazard : last]++;
	walk->total++;
	if (walk->view->json)
		put(walk->view, at, &site, hazard);
	else
		print(walk->view, at, &site, hazard);
	return ferror(walk->view->out) ? -EPIPE : 0;
}

int sites_hazards(const struct view *view, const struct cairn_sidecar *sidecar)
{
	struct walk walk = {.view = view, .sidecar = sidecar};
	struct cairn_err err = {0};
	int r = sidecar ? cairn_sidecar_hazards(sidecar, view->bin, visit, &walk, &err)
			: cairn_hazards(view->bin, visit, &walk, &err);

	if (r == -EPIPE)
		return STATUS_NOT_HERE;
	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	if (view->json)
		return STATUS_YES;
	fprintf(view->out, "%" PRIu64 " hazardous %s\n", walk.total,
		walk.total == 1 ? "site" : "sites");
	for (size_t i = 0; i < sizeof(walk.counts) / sizeof(walk.counts[0]); i++)
		if (walk.counts[i])
			fprintf(view->out, "%8" PRIu64 "  %s\n", walk.counts[i],
				cairn_hazard_text((enum cairn_hazard)i));
	return STATUS_YES;
}
