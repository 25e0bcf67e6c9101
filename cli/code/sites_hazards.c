/* SPDX-License-Identifier: BSD-2-Clause */
/* Places of a file where a uprobe is lost or does harm, whoever sets it. */
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

struct place {
	const char *symbol;
	uint64_t symbol_off;
	struct cairn_foff off;
	bool has_symbol, has_off;
};

static struct place place_of(const struct walk *walk, struct cairn_vaddr at)
{
	const struct cairn_binary *bin = walk->view->bin;
	struct place place = {0};
	struct cairn_vaddr start;

	place.has_off = cairn_binary_foff(bin, at, &place.off);
	place.has_symbol = walk->sidecar ? cairn_sidecar_symbol_of(walk->sidecar, at, &place.symbol, &start)
				      : cairn_binary_symbol_of(bin, at, &place.symbol, &start);
	if (place.has_symbol)
		place.symbol_off = at.v - start.v;
	return place;
}

static void put(const struct view *view, struct cairn_vaddr at, const struct place *place,
		enum cairn_hazard hazard)
{
	struct json j = {.out = view->out};

	json_open(&j, NULL, '{');
	json_hex(&j, "addr", at.v);
	if (place->has_off)
		json_hex(&j, "offset", place->off.v);
	else
		json_null(&j, "offset");
	json_text(&j, "symbol", place->has_symbol ? place->symbol : NULL);
	json_uint(&j, "symbol_off", place->symbol_off);
	json_text(&j, "hazard", cairn_hazard_id(hazard));
	json_text(&j, "text", cairn_hazard_text(hazard));
	json_close(&j);
}

static void print(const struct view *view, struct cairn_vaddr at, const struct place *place,
		  enum cairn_hazard hazard)
{
	char address[256];

	view_address(view, at, address, sizeof(address));
	say(view->out, "%-12s", address);
	if (place->has_symbol)
		say(view->out, " %s+0x%" PRIx64, place->symbol, place->symbol_off);
	fprintf(view->out, "  %s%s%s\n", view->style.bad, cairn_hazard_text(hazard), view->style.off);
}

static int visit(void *ctx, struct cairn_vaddr at, enum cairn_hazard hazard)
{
	struct walk *walk = ctx;
	struct place place = place_of(walk, at);
	size_t last = sizeof(walk->counts) / sizeof(walk->counts[0]) - 1;

	walk->counts[(size_t)hazard < last ? (size_t)hazard : last]++;
	walk->total++;
	if (walk->view->json)
		put(walk->view, at, &place, hazard);
	else
		print(walk->view, at, &place, hazard);
	return ferror(walk->view->out) ? -EPIPE : 0;
}

int sites_hazards(const struct view *view, const struct cairn_sidecar *sidecar)
{
	struct walk walk = {.view = view, .sidecar = sidecar};
	struct cairn_err err = {0};
	int r = sidecar ? cairn_sidecar_hazards(sidecar, view->bin, visit, &walk, &err) : cairn_hazards(view->bin, visit, &walk, &err);

	if (r == -EPIPE)
		return STATUS_NOT_HERE;
	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	if (view->json)
		return STATUS_YES;
	fprintf(view->out, "%" PRIu64 " hazardous %s\n", walk.total, walk.total == 1 ? "place" : "places");
	for (size_t i = 0; i < sizeof(walk.counts) / sizeof(walk.counts[0]); i++)
		if (walk.counts[i])
			fprintf(view->out, "%8" PRIu64 "  %s\n", walk.counts[i],
				cairn_hazard_text((enum cairn_hazard)i));
	return STATUS_YES;
}
