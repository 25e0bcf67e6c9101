/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn sites --lines: the lines of a function that can be probed, and where. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <cairn/lines.h>
#include <cairn/text.h>
#include <cairn/trace.h>

#include "cmd.h"
#include "demangled.h"
#include "near.h"
#include "say.h"
#include "sites.h"

/* ---- text ---- */

static void put_head(const struct view *view, const struct cairn_line *line)
{
	char source[512];

	view_source(line->file, line->line, 0, source, sizeof(source));
	say(view->out, "%s%s%s\n", view->style.name, source, view->style.off);
}

static void put_place(const struct view *view, const struct cairn_line *line)
{
	const struct cairn_function function = {.name = line->function ? line->function : ""};
	const struct cairn_site *site = &line->site;
	char address[256], where[VIEW_TEXT_MAX], source[512];

	view_address(view, site->at, address, sizeof(address));
	cairn_site_text(&function, site, shown_name, where, sizeof(where));
	say(view->out, "  %s  %s", address, where);
	if (site->n_chain) {
		view_source(site->chain[0].call_file, site->chain[0].call_line,
			    site->chain[0].call_column, source, sizeof(source));
		say(view->out, "  %s%s%s", view->style.faint, source, view->style.off);
	}
	fputc('\n', view->out);
	if (site->hazard != CAIRN_HAZARD_NONE)
		fprintf(view->out, "    no probe is set here: %s\n",
			cairn_hazard_text(site->hazard));
}

static const char *kind_word(enum cairn_variable_kind kind)
{
	switch (kind) {
	case CAIRN_VARIABLE_PARAMETER:
		return "parameter";
	case CAIRN_VARIABLE_LOCAL:
		return "local";
	case CAIRN_VARIABLE_STATIC:
		return "static";
	case CAIRN_VARIABLE_GLOBAL:
		return "global";
	}
	return NULL;
}

static void put_vars(const struct view *view, const struct cairn_variables *vars)
{
	char text[VIEW_TEXT_MAX], where[VIEW_TEXT_MAX];

	for (size_t i = 0; i < vars->n; i++) {
		const struct cairn_variable *v = &vars->p[i];

		cairn_types_declare(view->types, v->type, v->name, text, sizeof(text));
		view_location(view, &v->loc, where, sizeof(where));
		say(view->out, "    %s  %s\n", text, where);
	}
}

static bool is_same_line(const struct cairn_line *a, const struct cairn_line *b)
{
	return a->line == b->line &&
	       (a->file == b->file || (a->file && b->file && !strcmp(a->file, b->file)));
}

static int put_text(const struct view *view, const struct cairn_lines *lines, bool with_vars,
		    struct cairn_err *err)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < lines->n && r >= 0; i++) {
		struct cairn_variables vars = {0};

		if (!i || !is_same_line(&lines->p[i - 1], &lines->p[i])) {
			put_head(view, &lines->p[i]);
			n++;
		}
		put_place(view, &lines->p[i]);
		r = with_vars ? cairn_sites_vars(view->sites, &lines->p[i], &vars, err) : 0;
		put_vars(view, &vars);
	}
	fprintf(view->out, "%s%s at %s%s\n", view->style.faint, cairn_counted(n, "line").text,
		cairn_counted(lines->n, "place").text, view->style.off);
	return r;
}

/* ---- JSON ---- */

static void put_json_var(const struct view *view, struct json *j, const struct cairn_variable *v)
{
	char text[VIEW_TEXT_MAX];
	bool available = v->loc.why == CAIRN_AVAILABLE;
	const struct cairn_quirk_rule *quirk = cairn_quirk_rule(v->loc.quirk);

	json_open(j, NULL, '{');
	json_text(j, "name", v->name);
	cairn_types_name(view->types, v->type, text, sizeof(text));
	json_text(j, "type", text);
	json_text(j, "kind", kind_word(v->kind));
	json_uint(j, "line", v->decl_line);
	view_location(view, &v->loc, text, sizeof(text));
	json_text(j, "loc", available ? text : NULL);
	json_text(j, "unavailable", available ? NULL : cairn_unavailable_id(v->loc.why));
	json_text(j, "quirk", quirk ? quirk->id : NULL);
	json_close(j);
}

static int put_json_vars(const struct view *view, struct json *j, const struct cairn_line *line,
			 struct cairn_err *err)
{
	struct cairn_variables vars = {0};
	int r = cairn_sites_vars(view->sites, line, &vars, err);

	json_open(j, "vars", '[');
	for (size_t i = 0; i < vars.n; i++)
		put_json_var(view, j, &vars.p[i]);
	json_close(j);
	return r;
}

static int put_json(const struct view *view, const struct cairn_line *line, bool with_vars,
		    struct cairn_err *err)
{
	struct json j = {.out = view->out};
	int r = 0;

	json_open(&j, NULL, '{');
	json_text(&j, "function", line->function);
	json_text(&j, "file", line->file);
	json_uint(&j, "line", line->line);
	json_uint(&j, "column", line->column);
	json_text(&j, "kind", line->site.n_chain ? "inlined" : "out-of-line");
	sites_json_where(view, &j, &line->site);
	json_text(&j, "hazard",
		  line->site.hazard == CAIRN_HAZARD_NONE ? NULL
							 : cairn_hazard_id(line->site.hazard));
	if (with_vars)
		r = put_json_vars(view, &j, line, err);
	json_close(&j);
	return r;
}

/* ---- what is not there ---- */

static int missing(const struct view *view, const char *spec)
{
	const char *near[SUGGESTIONS_MAX], *colon = strrchr(spec, ':');
	struct cairn_function_list list = {0};
	struct cairn_lines lines = {0};
	char name[512];

	snprintf(name, sizeof(name), "%.*s", colon ? (int)(colon - spec) : 0, spec);
	if (colon && cairn_sites_lines(view->sites, name, &lines, NULL) > 0)
		return fail(STATUS_NO, "no statement of %s begins at line %s; --lines %s lists all",
			    name, colon + 1, name);
	if (cairn_sites_find(view->sites, spec, &list, NULL) > 0)
		return fail(STATUS_NO, "%s has no lines in the line table", spec);
	fail(STATUS_NO, "no function and no line %s in %s", spec, cairn_binary_path(view->bin));
	say_near(near, cairn_sites_suggest(view->sites, spec, near, SUGGESTIONS_MAX, NULL));
	return STATUS_NO;
}

int sites_lines(const struct view *view, const char *spec, bool vars)
{
	struct cairn_lines lines;
	struct cairn_err err = {0};
	int r = cairn_sites_lines(view->sites, spec, &lines, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_NO);
	if (!lines.n)
		return missing(view, spec);
	r = view->json ? 0 : put_text(view, &lines, vars, &err);
	for (size_t i = 0; view->json && i < lines.n && r >= 0; i++)
		r = put_json(view, &lines.p[i], vars, &err);
	return r < 0 ? fail_err(r, &err, STATUS_NO) : STATUS_YES;
}
