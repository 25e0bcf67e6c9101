/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cairn sites FILE FUNC --explain PARAM: why a parameter is unavailable, at each site
 *
 *	int put(long idx)  put.c:3
 *	  0x1136  idx  unavailable: may be stale: ...  [loop-arithmetic]
 *
 *	stale
 *	  ...
 *	loop-arithmetic
 *	  ...
 *
 * A reason and a quirk are explained once, after the sites.
 */
#include <string.h>

#include "cmd.h"
#include "say.h"
#include "sites.h"

struct explained {
	bool reasons[CAIRN_N_UNAVAILABLE], quirks[CAIRN_N_QUIRKS];
};

static bool is_meant(const struct view *view, const char *name)
{
	return !strcmp(view->explain, "*") || (name && !strcmp(view->explain, name));
}

static bool has_param(const struct view *view, const struct cairn_function *function)
{
	for (uint32_t i = 0; i < function->n_params; i++)
		if (is_meant(view, function->params[i].name))
			return true;
	for (uint32_t i = 0; i < function->n_sites; i++)
		for (uint32_t k = 0; k < function->sites[i].n_args; k++)
			if (is_meant(view, function->sites[i].args[k].name))
				return true;
	return false;
}

static void write_text(const struct view *view, const char *address, const struct cairn_arg *arg,
		       const char *location)
{
	const struct cairn_quirk_rule *rule = cairn_quirk_rule(arg->loc.quirk);

	say(view->out, "  %s  %s  %s", address, arg->name ? arg->name : "?", location);
	if (rule)
		say(view->out, "  [%s]", rule->id);
	fputc('\n', view->out);
}

static void write_json(const struct view *view, const struct cairn_function *function,
		       const struct cairn_site *site, const struct cairn_arg *arg,
		       const char *location)
{
	const struct cairn_quirk_rule *rule = cairn_quirk_rule(arg->loc.quirk);
	bool available = arg->loc.why == CAIRN_AVAILABLE;
	const char *reason = available ? NULL : cairn_unavailable_id(arg->loc.why);
	struct json j = {.out = view->out};

	json_open(&j, NULL, '{');
	json_text(&j, "function", function->name);
	json_hex(&j, "addr", site->at.v);
	json_text(&j, "name", arg->name);
	json_text(&j, "loc", available ? location : NULL);
	json_text(&j, "unavailable", reason);
	json_text(&j, "text", reason ? sites_reason(reason, true) : NULL);
	json_text(&j, "quirk", rule ? rule->id : NULL);
	json_text(&j, "finding", rule ? rule->finding : NULL);
	json_close(&j);
}

static void explain_site(const struct view *view, const struct cairn_function *function,
			 const struct cairn_site *site, struct explained *seen)
{
	char location[VIEW_TEXT_MAX], address[128];

	view_address(view, site->at, address, sizeof(address));
	for (uint32_t i = 0; i < site->n_args; i++) {
		const struct cairn_arg *arg = &site->args[i];

		if (!is_meant(view, arg->name))
			continue;
		view_location(view, &arg->loc, location, sizeof(location));
		seen->reasons[arg->loc.why] = true;
		seen->quirks[arg->loc.quirk] = true;
		if (view->json)
			write_json(view, function, site, arg, location);
		else
			write_text(view, address, arg, location);
	}
}

static void explain_words(const struct view *view, const struct explained *seen)
{
	for (unsigned int i = CAIRN_AVAILABLE + 1; i < CAIRN_N_UNAVAILABLE; i++) {
		const char *word = cairn_unavailable_id((enum cairn_unavailable)i);

		if (seen->reasons[i] && sites_reason(word, false)) {
			say(view->out, "\n%s\n\n", word);
			/* Text of our own, with line ends. */
			fputs(sites_reason(word, false), view->out);
			fputc('\n', view->out);
		}
	}
	for (unsigned int i = 1; i < CAIRN_N_QUIRKS; i++) {
		if (!seen->quirks[i])
			continue;
		say(view->out, "\n%s\n\n", cairn_quirk_rule(i)->id);
		sites_explain_quirk(view->out, cairn_quirk_rule(i));
	}
}

static int fail_no_param(const struct view *view, const struct cairn_function *function)
{
	fail(STATUS_NO, "%s has no parameter %s", function->name, view->explain);
	for (uint32_t i = 0; i < function->n_params; i++)
		if (function->params[i].name)
			say(stderr, "%s%s", i ? ", " : "It has: ", function->params[i].name);
	if (function->n_params)
		fputc('\n', stderr);
	return STATUS_NO;
}

int sites_explain_args(const struct view *view, const struct cairn_function *function)
{
	struct explained seen = {0};
	char declaration[VIEW_TEXT_MAX], source[512];

	if (!has_param(view, function))
		return fail_no_param(view, function);
	view_declaration(view, function, declaration, sizeof(declaration));
	view_source(function->decl_file, function->decl_line, 0, source, sizeof(source));
	if (!view->json)
		say(view->out, "%s  %s\n", declaration, source);
	for (uint32_t i = 0; i < function->n_sites; i++)
		explain_site(view, function, &function->sites[i], &seen);
	if (!view->json)
		explain_words(view, &seen);
	return STATUS_YES;
}
