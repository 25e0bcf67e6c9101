/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function and its sites, for people
 *
 *	void *tcache_get(size_t tc_idx)  malloc.c:3182
 *	  0x9a3a1  inlined in __libc_malloc+0x61, called at malloc.c:3311:14
 *	           size_t tc_idx  %rbx
 *	  3 sites: 1 body, 2 inlined; arguments: 2 all, 1 none
 *
 * Everything that belongs to a site is indented under its address. A function may have thousands of
 * sites. So each line is put together without printf(), and the text that all lines share is made
 * once.
 */
#include <inttypes.h>
#include <string.h>

#include "demangled.h"
#include "running.h"
#include "sites.h"
#include "text.h"

enum {
	/* Declarations wider than this do not push the locations further to the right. */
	DECLARATION_COLUMNS = 40,
	/* Parameters of a function whose declarations are kept; few have more. */
	PARAMS_KEPT = 8,
	/* More would cost more to touch than it saves calls. */
	WRITTEN_AT_ONCE = 1 << 14,
};

enum coverage site_coverage(const struct cairn_site *site)
{
	uint32_t available = 0;

	for (uint32_t i = 0; i < site->n_args; i++)
		available += site->args[i].loc.why == CAIRN_AVAILABLE;
	if (available == site->n_args)
		return COVERED_ALL;
	return available ? COVERED_SOME : COVERED_NONE;
}

/* ---- pieces ---- */

static void put_address(struct text *t, const struct view *view, struct cairn_vaddr at)
{
	const char *section;
	uint64_t off;

	if (view->running && cairn_kernel_address(view->running->kernel, at, &off)) {
		text_put(t, "0x");
		text_put_hex(t, off);
		return;
	}
	if (cairn_binary_is_relocatable(view->bin) &&
	    cairn_binary_section_of(view->bin, at, &section, &off)) {
		text_put_name(t, section);
		text_put(t, "+");
	} else {
		off = at.v;
	}
	text_put(t, "0x");
	text_put_hex(t, off);
}

void view_address(const struct view *view, struct cairn_vaddr at, char *buf, size_t size)
{
	struct text t = text_in(buf, size);

	put_address(&t, view, at);
	text_end(&t);
}

static void put_declaration(struct text *t, const struct view *view,
			    const struct cairn_function *function)
{
	char type[VIEW_TEXT_MAX];
	size_t len;

	if (function->params_unknown) {
		text_put_name(t, function->name);
		text_put(t, "(?)");
		return;
	}
	cairn_types_name(view->types, function->return_type, type, sizeof(type));
	len = strlen(type);
	text_put_name(t, type);
	/* "char *f(void)", and "int f(void)". */
	if (!len || type[len - 1] != '*')
		text_put(t, " ");
	text_put_name(t, function->name);
	text_put(t, "(");
	for (uint32_t i = 0; i < function->n_params; i++) {
		const struct cairn_param *param = &function->params[i];

		if (param->name)
			cairn_types_declare(view->types, param->type, param->name, type,
					    sizeof(type));
		else
			cairn_types_name(view->types, param->type, type, sizeof(type));
		text_put(t, i ? ", " : "");
		text_put_name(t, type);
	}
	if (function->variadic)
		text_put(t, function->n_params ? ", ..." : "...");
	text_put(t, function->n_params || function->variadic ? ")" : "void)");
}

void view_declaration(const struct view *view, const struct cairn_function *function, char *buf,
		      size_t size)
{
	struct text t = text_in(buf, size);

	put_declaration(&t, view, function);
	text_end(&t);
}

static void put_source(struct text *t, const char *file, uint32_t source_line, uint32_t column)
{
	const char *slash;

	if (!file)
		return;
	slash = strrchr(file, '/');
	text_put_name(t, slash && slash[1] ? slash + 1 : file);
	if (!source_line)
		return;
	text_put(t, ":");
	text_put_decimal(t, source_line);
	if (!column)
		return;
	text_put(t, ":");
	text_put_decimal(t, column);
}

void view_source(const char *file, uint32_t source_line, uint32_t column, char *buf, size_t size)
{
	struct text t = text_in(buf, size);

	put_source(&t, file, source_line, column);
	text_end(&t);
}

void view_location(const struct view *view, const struct cairn_location *loc, char *buf,
		   size_t size)
{
	cairn_location_text(loc, cairn_sites_symbol, view->sites, buf, size);
}

/* ---- a site ---- */

/* The output state of one function. */
struct writer {
	const struct view *view;
	const struct cairn_function *function;
	struct text text;
	int width; /* of declarations */
	/*
	 * Nearly all sites have the function's parameters, and these first ones are declared once.
	 */
	struct declared {
		size_t n;
		char text[DECLARATION_COLUMNS];
	} declared[PARAMS_KEPT];
};

static void put_offset(struct text *t, const char *sign, uint64_t off)
{
	text_put(t, sign);
	text_put(t, "0x");
	text_put_hex(t, off);
}

/* "malloc+0x5c", and the symbol when it adds something: "malloc+0x5c (malloc.cold+0x3)". */
static void put_container(struct text *t, const struct cairn_site *site)
{
	const char *symbol = demangled(site->symbol);
	const char *container =
		site->container ? demangled_or(site->symbol, site->container) : symbol;
	const char *clone =
		container && site->container ? strstr(container, DEMANGLED_CLONE) : NULL;

	if (!container) {
		text_put(t, "code without a name");
		return;
	}
	text_put_name_chars(t, container, clone ? (size_t)(clone - container) : strlen(container));
	if (!site->container)
		put_offset(t, "+", site->symbol_off);
	else if (site->container_off < 0)
		put_offset(t, "-", (uint64_t)-site->container_off);
	else
		put_offset(t, "+", (uint64_t)site->container_off);
	if (!symbol || !site->container ||
	    (!strcmp(symbol, container) && (int64_t)site->symbol_off == site->container_off))
		return;
	text_put(t, " (");
	text_put_name(t, symbol);
	put_offset(t, "+", site->symbol_off);
	text_put(t, ")");
}

static void put_call(struct text *t, const struct cairn_inlined_call *call)
{
	if (!call->call_file)
		return;
	text_put(t, ", called at ");
	put_source(t, call->call_file, call->call_line, call->call_column);
}

static void put_where(struct text *t, const struct cairn_function *function,
		      const struct cairn_site *site)
{
	if (site->n_chain || site->kind == CAIRN_SITE_INLINED) {
		text_put(t, site->kind == CAIRN_SITE_PART ? "split-off part, inlined in "
							  : "inlined in ");
		put_container(t, site);
		if (site->n_chain)
			put_call(t, &site->chain[0]);
		return;
	}
	text_put(t, site->kind == CAIRN_SITE_PART ? "split-off part" : "body");
	if (site->symbol && strcmp(site->symbol, function->name) &&
	    (!function->linkage_name || strcmp(site->symbol, function->linkage_name))) {
		text_put(t, " ");
		text_put_name(t, demangled(site->symbol));
	}
	if (site->symbol && site->symbol_off)
		put_offset(t, "+", site->symbol_off);
}

/* The calls around the inlined call, outwards. */
static void put_chain(struct text *t, const struct style *style, const struct cairn_site *site,
		      size_t indent)
{
	for (uint32_t i = 1; i < site->n_chain; i++) {
		const struct cairn_inlined_call *call = &site->chain[i];

		text_put_spaces(t, indent);
		text_put(t, style->faint);
		text_put(t, "via ");
		text_put_name(t, call->function ? call->function : "code without a name");
		put_call(t, call);
		text_put(t, style->off);
		text_put(t, "\n");
	}
}

/* The function's declarations, and how wide they are. */
static void declare_params(struct writer *w)
{
	const struct cairn_function *function = w->function;

	for (uint32_t i = 0; i < function->n_params; i++) {
		const struct cairn_param *param = &function->params[i];
		char text[DECLARATION_COLUMNS + 1];
		size_t n = cairn_types_declare(w->view->types, param->type,
					       param->name ? param->name : "", text, sizeof(text));

		if (n > DECLARATION_COLUMNS)
			continue;
		if ((int)n > w->width)
			w->width = (int)n;
		if (i >= PARAMS_KEPT)
			continue;
		w->declared[i].n = n;
		memcpy(w->declared[i].text, text, n);
	}
}

/* Argument @i of a site. Returns how wide it is. */
static int put_declared(struct writer *w, const struct cairn_arg *arg, uint32_t i)
{
	const struct cairn_param *param =
		i < w->function->n_params && i < PARAMS_KEPT ? &w->function->params[i] : NULL;
	size_t n;

	if (param && w->declared[i].n && param->type == arg->type && param->name == arg->name) {
		text_put_name_chars(&w->text, w->declared[i].text, w->declared[i].n);
		return (int)w->declared[i].n;
	}
	n = cairn_types_declare(w->view->types, arg->type, arg->name ? arg->name : "",
				text_room(&w->text, VIEW_TEXT_MAX), VIEW_TEXT_MAX);
	text_take_name(&w->text, n, VIEW_TEXT_MAX);
	return (int)n;
}

static void put_args(struct writer *w, const struct cairn_site *site, size_t indent)
{
	const struct view *view = w->view;
	struct text *t = &w->text;

	for (uint32_t i = 0; i < site->n_args; i++) {
		const struct cairn_arg *arg = &site->args[i];
		bool bad = arg->loc.why != CAIRN_AVAILABLE;
		int width;

		text_put_spaces(t, indent);
		width = put_declared(w, arg, i);
		text_put_spaces(t, 2 + (size_t)(width < w->width ? w->width - width : 0));
		if (bad)
			text_put(t, view->style.bad);
		text_take_name(t,
			       cairn_location_text(&arg->loc, cairn_sites_symbol, view->sites,
						   text_room(t, VIEW_TEXT_MAX), VIEW_TEXT_MAX),
			       VIEW_TEXT_MAX);
		if (bad)
			text_put(t, view->style.off);
		text_put(t, "\n");
	}
}

/* Remarks on a site; few sites have any. */
static void put_remarks(struct text *t, const struct style *style, const struct cairn_site *site,
			size_t indent)
{
	if (site->n_shared > 1) {
		text_put_spaces(t, indent);
		text_put(t, "shares its address with ");
		text_put_decimal(t, site->n_shared - 1);
		text_put(t, " more of this function\n");
	}
	for (uint32_t bit = 1; bit && bit <= site->count_caveats; bit <<= 1) {
		if (!(site->count_caveats & bit))
			continue;
		text_put_spaces(t, indent);
		text_put(t, style->faint);
		text_put(t, cairn_count_caveat_text(bit));
		text_put(t, style->off);
		text_put(t, "\n");
	}
	if (site->hazard != CAIRN_HAZARD_NONE) {
		text_put_spaces(t, indent);
		text_put(t, style->bad);
		if (site->hazard != CAIRN_HAZARD_NOT_CHECKED)
			text_put(t, "hazard: ");
		text_put(t, cairn_hazard_text(site->hazard));
		text_put(t, style->off);
		text_put(t, "\n");
	}
}

static void put_site(struct writer *w, const struct cairn_site *site)
{
	struct text *t = &w->text;
	char address[256];
	size_t indent;

	view_address(w->view, site->at, address, sizeof(address));
	indent = strlen(address) + 4;
	text_put(t, "  ");
	text_put(t, address);
	text_put(t, "  ");
	put_where(t, w->function, site);
	text_put(t, "\n");
	put_chain(t, &w->view->style, site, indent);
	put_args(w, site, indent);
	put_remarks(t, &w->view->style, site, indent);
}

/* ---- the text around them ---- */

static void print_unknown(const struct view *view, const struct cairn_function *function)
{
	bool is_symbol = function->n_sites && function->sites[0].rule == CAIRN_AT_SYMBOL;

	if (function->params_unknown)
		fprintf(view->out, "  %sno parameters are described: %s%s\n", view->style.faint,
			is_symbol ? "only the symbol table knows this function"
				  : "assembler code, or compiled without types (-g1)",
			view->style.off);
}

static void print_summary(const struct view *view, const struct cairn_function *function)
{
	static const char *const covered[N_COVERAGES] = {"all", "some", "none"};
	uint32_t kinds[CAIRN_SITE_PLACE + 1] = {0}, counts[N_COVERAGES] = {0}, doubtful = 0;
	const char *separator = " ";

	for (uint32_t i = 0; i < function->n_sites; i++) {
		kinds[function->sites[i].kind]++;
		doubtful += function->sites[i].count_caveats != 0;
		counts[site_coverage(&function->sites[i])]++;
	}
	fprintf(view->out, "  %s%" PRIu32 " %s: %" PRIu32 " %s, %" PRIu32 " inlined",
		view->style.faint, function->n_sites, function->n_sites == 1 ? "site" : "sites",
		kinds[CAIRN_SITE_OUT_OF_LINE],
		kinds[CAIRN_SITE_OUT_OF_LINE] == 1 ? "body" : "bodies", kinds[CAIRN_SITE_INLINED]);
	if (kinds[CAIRN_SITE_PART])
		fprintf(view->out, ", %" PRIu32 " split off", kinds[CAIRN_SITE_PART]);
	if (doubtful)
		fprintf(view->out, "; events may not count calls at %" PRIu32, doubtful);
	if (function->n_without_code)
		fprintf(view->out, "; %" PRIu32 " inlined without code", function->n_without_code);
	if (function->n_params && function->n_sites) {
		fputs("; arguments known:", view->out);
		for (int i = 0; i < N_COVERAGES; i++) {
			if (!counts[i])
				continue;
			fprintf(view->out, "%s%s at %" PRIu32, separator, covered[i], counts[i]);
			separator = ", ";
		}
	}
	fprintf(view->out, "%s\n", view->style.off);
}

static void put_head(struct text *t, const struct view *view, const struct cairn_function *function)
{
	text_put(t, view->style.name);
	put_declaration(t, view, function);
	text_put(t, view->style.off);
	text_put(t, "  ");
	put_source(t, function->decl_file, function->decl_line, 0);
	text_put(t, "\n");
}

void sites_text(const struct view *view, const struct cairn_function *function)
{
	char buf[WRITTEN_AT_ONCE];
	struct writer w = {.view = view,
			   .function = function,
			   .text = {.out = view->out, .buf = buf, .size = sizeof(buf)}};

	declare_params(&w);
	put_head(&w.text, view, function);
	for (uint32_t i = 0; i < function->n_sites; i++)
		put_site(&w, &function->sites[i]);
	text_flush(&w.text);
	print_unknown(view, function);
	print_summary(view, function);
}
