/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn sites --usdt: the probes that a program's authors marked. */
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include <cairn/text.h>
#include <cairn/usdt.h>

#include "cmd.h"
#include "demangled.h"
#include "say.h"
#include "sites.h"

/* The name of an address, for operands at a symbol: the tables of the file itself. */
static bool name_of(void *ctx, struct cairn_vaddr at, char *name, size_t size)
{
	const char *symbol;
	struct cairn_vaddr start;

	if (!cairn_binary_symbol_of(ctx, at, &symbol, &start) || start.v != at.v)
		return false;
	snprintf(name, size, "%s", symbol);
	return true;
}

static void location(const struct view *view, const struct cairn_usdt_arg *arg, char *buf,
		     size_t size)
{
	cairn_location_text(&arg->loc, name_of, (void *)view->bin, buf, size);
}

/* "int32_t"; "?" for a size that the note does not have. */
static void type_text(const struct cairn_usdt_arg *arg, char *buf, size_t size)
{
	if (!arg->size)
		snprintf(buf, size, "?");
	else if (arg->is_float)
		snprintf(buf, size, "%s", arg->size == 8 ? "double" : "float");
	else
		snprintf(buf, size, "%sint%u_t", arg->is_signed ? "" : "u", 8u * arg->size);
}

/* ---- text ---- */

static void put_where(const struct view *view, const struct cairn_usdt_site *site)
{
	char address[256], name[VIEW_TEXT_MAX];

	view_address(view, site->at, address, sizeof(address));
	fprintf(view->out, "  %s", address);
	if (site->symbol) {
		shown_name(site->symbol, NULL, name, sizeof(name));
		say(view->out, "  in %s+0x%" PRIx64, name, site->symbol_off);
	}
	if (site->has_semaphore) {
		view_address(view, site->semaphore, address, sizeof(address));
		fprintf(view->out, "  %ssemaphore %s%s%s", view->style.faint, address,
			site->has_semaphore_off ? "" : ", which is not in the file",
			view->style.off);
	}
	fputc('\n', view->out);
	if (site->hazard != CAIRN_HAZARD_NONE)
		fprintf(view->out, "    no probe is set here: %s\n",
			cairn_hazard_text(site->hazard));
}

static void put_arg(const struct view *view, const struct cairn_usdt_arg *arg, uint32_t number)
{
	char where[VIEW_TEXT_MAX], type[16];

	type_text(arg, type, sizeof(type));
	location(view, arg, where, sizeof(where));
	say(view->out, "    $arg%" PRIu32 "  %-8s  %s  %s%s%s\n", number, type, where,
	    view->style.faint, arg->text, view->style.off);
}

static void put_text(const struct view *view, const struct cairn_usdt_site *site, bool is_first)
{
	if (is_first)
		say(view->out, "%s%s:%s%s\n", view->style.name, site->provider, site->name,
		    view->style.off);
	put_where(view, site);
	for (uint32_t i = 0; i < site->n_args; i++)
		put_arg(view, &site->args[i], i + 1);
}

/* ---- JSON ---- */

static void put_json_arg(const struct view *view, struct json *j, const struct cairn_usdt_arg *arg,
			 uint32_t number)
{
	char text[VIEW_TEXT_MAX];
	bool available = arg->loc.why == CAIRN_AVAILABLE;

	json_open(j, NULL, '{');
	snprintf(text, sizeof(text), "$arg%" PRIu32, number);
	json_text(j, "name", text);
	json_text(j, "note", arg->text);
	if (arg->size)
		json_uint(j, "size", arg->size);
	else
		json_null(j, "size");
	json_bool(j, "signed", arg->is_signed);
	json_bool(j, "float", arg->is_float);
	location(view, arg, text, sizeof(text));
	json_text(j, "loc", available ? text : NULL);
	json_text(j, "unavailable", available ? NULL : cairn_unavailable_id(arg->loc.why));
	json_close(j);
}

static void put_hex(struct json *j, const char *key, bool is_there, uint64_t value)
{
	if (is_there)
		json_hex(j, key, value);
	else
		json_null(j, key);
}

static void put_json(const struct view *view, const struct cairn_usdt_site *site)
{
	struct json j = {.out = view->out};

	json_open(&j, NULL, '{');
	json_text(&j, "provider", site->provider);
	json_text(&j, "name", site->name);
	json_hex(&j, "addr", site->at.v);
	put_hex(&j, "offset", site->has_off, site->off.v);
	json_text(&j, "symbol", site->symbol);
	json_uint(&j, "symbol_off", site->symbol_off);
	put_hex(&j, "semaphore", site->has_semaphore, site->semaphore.v);
	put_hex(&j, "semaphore_offset", site->has_semaphore_off, site->semaphore_off.v);
	json_text(&j, "hazard",
		  site->hazard == CAIRN_HAZARD_NONE ? NULL : cairn_hazard_id(site->hazard));
	json_open(&j, "args", '[');
	for (uint32_t i = 0; i < site->n_args; i++)
		put_json_arg(view, &j, &site->args[i], i + 1);
	json_close(&j);
	json_close(&j);
}

/* ---- choosing ---- */

static bool is_meant(const struct cairn_usdt_site *site, const char *spec)
{
	const char *colon = strrchr(spec, ':');
	char provider[256];

	if (!colon)
		return !fnmatch(spec, site->name, 0);
	snprintf(provider, sizeof(provider), "%.*s", (int)(colon - spec), spec);
	return !fnmatch(provider, site->provider, 0) && !fnmatch(colon + 1, site->name, 0);
}

struct shown {
	size_t n_probes, n_sites;
};

static bool is_same_probe(const struct cairn_usdt_site *a, const struct cairn_usdt_site *b)
{
	return !strcmp(a->provider, b->provider) && !strcmp(a->name, b->name);
}

static struct shown show(const struct view *view, const struct cairn_usdt *usdt, const char *spec)
{
	const struct cairn_usdt_site *sites, *last = NULL;
	size_t n = cairn_usdt_sites(usdt, &sites);
	struct shown shown = {0};

	for (size_t i = 0; i < n; i++) {
		if (spec && !is_meant(&sites[i], spec))
			continue;
		bool is_first = !last || !is_same_probe(last, &sites[i]);
		if (view->json)
			put_json(view, &sites[i]);
		else
			put_text(view, &sites[i], is_first);
		shown.n_probes += is_first;
		shown.n_sites++;
		last = &sites[i];
	}
	return shown;
}

static int show_or_fail(const struct view *view, const struct cairn_usdt *usdt, const char *spec)
{
	struct shown shown = show(view, usdt, spec);

	if (!shown.n_sites && spec)
		return fail(STATUS_NO, "no USDT probe in %s matches %s",
			    cairn_binary_path(view->bin), spec);
	if (!shown.n_sites)
		return fail(STATUS_NO, "%s has no USDT probes", cairn_binary_path(view->bin));
	if (!view->json)
		fprintf(view->out, "%s%s at %s%s\n", view->style.faint,
			cairn_counted(shown.n_probes, "probe").text,
			cairn_counted(shown.n_sites, "site").text, view->style.off);
	return STATUS_YES;
}

int sites_usdt(const struct view *view, char *const *specs, size_t n_specs)
{
	struct cairn_usdt *usdt;
	struct cairn_err err = {0};
	int r = cairn_usdt_open(view->bin, &usdt, &err), status = STATUS_YES;

	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	if (!n_specs)
		status = show_or_fail(view, usdt, NULL);
	for (size_t i = 0; i < n_specs; i++) {
		int one = show_or_fail(view, usdt, specs[i]);

		status = one > status ? one : status;
	}
	cairn_usdt_close(usdt);
	return status;
}
