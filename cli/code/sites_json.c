/* SPDX-License-Identifier: BSD-2-Clause */
/* Sites as JSON, one line each; docs/json.md is the contract. */
#include "running.h"
#include "sites.h"

static const char *kind_word(enum cairn_site_kind kind)
{
	switch (kind) {
	case CAIRN_SITE_OUT_OF_LINE:
		return "out-of-line";
	case CAIRN_SITE_INLINED:
		return "inlined";
	case CAIRN_SITE_PART:
		return "part";
	case CAIRN_SITE_PLACE:
		return "place";
	}
	return NULL;
}

static const char *rule_word(enum cairn_address_rule rule)
{
	switch (rule) {
	case CAIRN_AT_LOW_PC:
		return "low-pc";
	case CAIRN_AT_ENTRY_PC:
		return "entry-pc";
	case CAIRN_AT_FIRST_RANGE:
		return "first-range";
	case CAIRN_AT_CFG_ENTRY:
		return "cfg-entry";
	case CAIRN_AT_ENTRY_ROW:
		return "entry-row";
	case CAIRN_AT_SYMBOL:
		return "symbol";
	case CAIRN_AT_BTF:
		return "btf";
	case CAIRN_AT_GIVEN:
		return "given";
	}
	return NULL;
}

static void put_line(struct json *j, const char *key, uint32_t line)
{
	if (line)
		json_uint(j, key, line);
	else
		json_null(j, key);
}

static void put_call(struct json *j, const struct cairn_inlined_call *call)
{
	json_text(j, "file", call->call_file);
	put_line(j, "line", call->call_line);
	put_line(j, "column", call->call_column);
}

static void put_chain(struct json *j, const struct cairn_site *site)
{
	if (site->n_chain) {
		json_open(j, "call", '{');
		put_call(j, &site->chain[0]);
		json_close(j);
	} else {
		json_null(j, "call");
	}
	json_open(j, "chain", '[');
	for (uint32_t i = 0; i < site->n_chain; i++) {
		json_open(j, NULL, '{');
		json_text(j, "function", site->chain[i].function);
		put_call(j, &site->chain[i]);
		json_close(j);
	}
	json_close(j);
}

static void put_args(const struct view *view, struct json *j, const struct cairn_site *site)
{
	char text[VIEW_TEXT_MAX];

	json_open(j, "args", '[');
	for (uint32_t i = 0; i < site->n_args; i++) {
		const struct cairn_arg *arg = &site->args[i];
		bool available = arg->loc.why == CAIRN_AVAILABLE;
		const struct cairn_quirk_rule *quirk = cairn_quirk_rule(arg->loc.quirk);

		json_open(j, NULL, '{');
		json_text(j, "name", arg->name);
		cairn_types_name(view->types, arg->type, text, sizeof(text));
		json_text(j, "type", text);
		view_location(view, &arg->loc, text, sizeof(text));
		json_text(j, "loc", available ? text : NULL);
		json_text(j, "unavailable", available ? NULL : cairn_unavailable_id(arg->loc.why));
		json_text(j, "quirk", quirk ? quirk->id : NULL);
		json_text(j, "text", text);
		json_close(j);
	}
	json_close(j);
}

static void put_caveats(struct json *j, const struct cairn_site *site)
{
	json_open(j, "count_caveats", '[');
	for (uint32_t bit = 1; bit && bit <= site->count_caveats; bit <<= 1)
		if (site->count_caveats & bit)
			json_text(j, NULL, cairn_count_caveat_id(bit));
	json_close(j);
	json_uint(j, "bypasses", site->n_bypasses);
}

static void put_where(const struct view *view, struct json *j, const struct cairn_site *site)
{
	const char *section;
	uint64_t section_off, now;

	json_hex(j, "addr", site->at.v);
	if (view->running && cairn_kernel_address(view->running->kernel, site->at, &now))
		json_hex(j, "running", now);
	json_text(j, "rule", rule_word(site->rule));
	if (site->has_off)
		json_hex(j, "offset", site->off.v);
	else
		json_null(j, "offset");
	if (cairn_binary_section_of(view->bin, site->at, &section, &section_off)) {
		json_text(j, "section", section);
		json_uint(j, "section_off", section_off);
	} else {
		json_null(j, "section");
		json_null(j, "section_off");
	}
	json_text(j, "symbol", site->symbol);
	json_uint(j, "symbol_off", site->symbol_off);
	json_text(j, "container", site->container);
	json_int(j, "container_off", site->container_off);
}

void sites_json_where(const struct view *view, struct json *j, const struct cairn_site *site)
{
	put_where(view, j, site);
	put_chain(j, site);
}

void sites_json_declared(struct json *j, const struct cairn_function *function)
{
	json_text(j, "function", function->name);
	json_text(j, "file", function->decl_file);
	put_line(j, "line", function->decl_line);
}

static void put_site(const struct view *view, const struct cairn_function *function,
		     const struct cairn_site *site)
{
	struct json j = {.out = view->out};

	json_open(&j, NULL, '{');
	sites_json_declared(&j, function);
	json_text(&j, "kind", kind_word(site->kind));
	put_where(view, &j, site);
	put_chain(&j, site);
	put_args(view, &j, site);
	json_bool(&j, "params_unknown", function->params_unknown);
	json_text(&j, "hazard",
		  site->hazard == CAIRN_HAZARD_NONE ? NULL : cairn_hazard_id(site->hazard));
	json_uint(&j, "shared", site->n_shared);
	put_caveats(&j, site);
	json_hex(&j, "die", site->die);
	json_close(&j);
}

void sites_json(const struct view *view, const struct cairn_function *function)
{
	for (uint32_t i = 0; i < function->n_sites; i++)
		put_site(view, function, &function->sites[i]);
}
