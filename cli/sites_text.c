/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function and its places, for people
 *
 *	void *tcache_get(size_t tc_idx)  malloc.c:3182
 *	  0x9a3a1  inlined in __libc_malloc+0x61, called at malloc.c:3311:14
 *	           size_t tc_idx  %rbx
 *	  3 places: 1 body, 2 inlined; arguments: 2 all, 1 none
 *
 * Everything that belongs to a place is indented under its address. A function may have thousands, so what is in each line
 * is put together without printf().
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "demangle.h"
#include "sites.h"

/* Declarations wider than this do not push the locations further to the right. */
#define DECLARATION_COLUMNS 40

/* snprintf for a text that is put together from pieces: where the next piece goes. */
struct line {
	char *buf;
	size_t size, n;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct line *line, const char *format, ...)
{
	bool room = line->n < line->size;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(room ? line->buf + line->n : NULL, room ? line->size - line->n : 0, format, args);
	va_end(args);
	line->n += n > 0 ? (size_t)n : 0;
}

static void add_chars(struct line *line, const char *chars, size_t n)
{
	size_t room = line->n < line->size ? line->size - line->n : 0;

	if (room) {
		size_t fits = n < room ? n : room - 1;

		memcpy(line->buf + line->n, chars, fits);
		line->buf[line->n + fits] = '\0';
	}
	line->n += n;
}

static void add_text(struct line *line, const char *text)
{
	add_chars(line, text, strlen(text));
}

/* @mark  in front of the number, which is of @base */
static void add_number(struct line *line, const char *mark, uint64_t value, unsigned int base)
{
	char digits[24], *end = digits + sizeof(digits), *at = end;

	do
		*--at = "0123456789abcdef"[value % base];
	while (value /= base);
	add_text(line, mark);
	add_chars(line, at, (size_t)(end - at));
}

enum coverage site_coverage(const struct cairn_site *site)
{
	uint32_t available = 0;

	for (uint32_t i = 0; i < site->n_args; i++)
		available += site->args[i].loc.why == CAIRN_AVAILABLE;
	if (available == site->n_args)
		return COVERED_ALL;
	return available ? COVERED_SOME : COVERED_NONE;
}

size_t view_address(const struct view *view, struct cairn_vaddr at, char *buf, size_t size)
{
	struct line line = {buf, size, 0};
	const char *section;
	uint64_t off;

	if (cairn_binary_is_relocatable(view->bin) &&
	    cairn_binary_section_of(view->bin, at, &section, &off))
		add(&line, "%s+0x%" PRIx64, section, off);
	else
		add_number(&line, "0x", at.v, 16);
	return line.n;
}

size_t view_declaration(const struct view *view, const struct cairn_function *function, char *buf,
			size_t size)
{
	struct line line = {buf, size, 0};
	char type[VIEW_TEXT_MAX];
	size_t len;

	if (function->params_unknown) {
		add(&line, "%s(?)", function->name);
		return line.n;
	}
	cairn_types_name(view->types, function->return_type, type, sizeof(type));
	len = strlen(type);
	/* "char *f(void)", and "int f(void)". */
	add(&line, "%s%s%s(", type, len && type[len - 1] == '*' ? "" : " ", function->name);
	for (uint32_t i = 0; i < function->n_params; i++) {
		const struct cairn_param *param = &function->params[i];

		if (param->name)
			cairn_types_declare(view->types, param->type, param->name, type, sizeof(type));
		else
			cairn_types_name(view->types, param->type, type, sizeof(type));
		add(&line, "%s%s", i ? ", " : "", type);
	}
	if (function->variadic)
		add(&line, "%s", function->n_params ? ", ..." : "...");
	add(&line, "%s", function->n_params || function->variadic ? ")" : "void)");
	return line.n;
}

size_t view_source(const char *file, uint32_t source_line, uint32_t column, char *buf, size_t size)
{
	struct line line = {buf, size, 0};
	const char *slash;

	if (size)
		buf[0] = '\0';
	if (!file)
		return 0;
	slash = strrchr(file, '/');
	add_text(&line, slash && slash[1] ? slash + 1 : file);
	if (source_line)
		add_number(&line, ":", source_line, 10);
	if (source_line && column)
		add_number(&line, ":", column, 10);
	return line.n;
}

size_t view_location(const struct view *view, const struct cairn_location *loc, char *buf,
		     size_t size)
{
	return cairn_location_text(loc, cairn_sites_symbol, view->sites, buf, size);
}

static void add_symbol(struct line *line, const char *symbol, uint64_t off)
{
	add_text(line, " (");
	add_text(line, symbol);
	add_number(line, "+0x", off, 16);
	add_text(line, ")");
}

/* "malloc+0x5c", and the symbol when it tells more: "malloc+0x5c (malloc.cold+0x3)". */
static void add_container(struct line *line, const struct cairn_site *site)
{
	const char *symbol = demangled(site->symbol);
	const char *container = site->container ? demangled_or(site->symbol, site->container) : symbol;
	const char *clone = container && site->container ? strstr(container, DEMANGLED_CLONE) : NULL;

	if (!container) {
		add_text(line, "code without a name");
		return;
	}
	add_chars(line, container, clone ? (size_t)(clone - container) : strlen(container));
	if (!site->container)
		add_number(line, "+0x", site->symbol_off, 16);
	else if (site->container_off < 0)
		add_number(line, "-0x", (uint64_t)-site->container_off, 16);
	else
		add_number(line, "+0x", (uint64_t)site->container_off, 16);
	if (symbol && site->container && (strcmp(symbol, container) || (int64_t)site->symbol_off != site->container_off))
		add_symbol(line, symbol, site->symbol_off);
}

static void add_place(struct line *line, const struct cairn_function *function,
		      const struct cairn_site *site)
{
	char source[512];

	if (site->n_chain) {
		add_text(line, site->kind == CAIRN_SITE_PART ? "split-off part, inlined in " : "inlined in ");
		add_container(line, site);
		if (site->chain[0].call_file) {
			const struct cairn_inlined_call *call = &site->chain[0];

			view_source(call->call_file, call->call_line, call->call_column, source,
				    sizeof(source));
			add_text(line, ", called at ");
			add_text(line, source);
		}
		return;
	}
	add(line, "%s", site->kind == CAIRN_SITE_PART ? "split-off part" : "body");
	if (site->symbol && strcmp(site->symbol, function->name) &&
	    (!function->linkage_name || strcmp(site->symbol, function->linkage_name)))
		add(line, " %s", demangled(site->symbol));
	if (site->symbol && site->symbol_off)
		add(line, "+0x%" PRIx64, site->symbol_off);
}

static void print_spaces(FILE *out, int n)
{
	static const char spaces[] = "                                        ";

	for (; n > 0; n -= (int)sizeof(spaces) - 1)
		fwrite_unlocked(spaces, 1, n < (int)sizeof(spaces) ? (size_t)n : sizeof(spaces) - 1, out);
}

/* The calls around the inlined call, outwards. */
static void print_chain(const struct view *view, const struct cairn_site *site, int indent)
{
	char source[512];

	for (uint32_t i = 1; i < site->n_chain; i++) {
		const struct cairn_inlined_call *call = &site->chain[i];

		view_source(call->call_file, call->call_line, call->call_column, source, sizeof(source));
		print_spaces(view->out, indent);
		fputs_unlocked(view->style.faint, view->out);
		fputs_unlocked("via ", view->out);
		fputs_unlocked(call->function ? call->function : "code without a name", view->out);
		if (source[0])
			fputs_unlocked(", called at ", view->out);
		fputs_unlocked(source, view->out);
		fputs_unlocked(view->style.off, view->out);
		putc_unlocked('\n', view->out);
	}
}

static int declaration_width(const struct view *view, const struct cairn_function *function)
{
	char text[VIEW_TEXT_MAX];
	size_t widest = 0;

	for (uint32_t i = 0; i < function->n_params; i++) {
		const struct cairn_param *param = &function->params[i];
		size_t n = cairn_types_declare(view->types, param->type, param->name ? param->name : "", text,
					       sizeof(text));

		if (n > widest && n <= DECLARATION_COLUMNS)
			widest = n;
	}
	return (int)widest;
}

static void print_args(const struct view *view, const struct cairn_site *site, int indent, int width)
{
	char declaration[VIEW_TEXT_MAX], location[VIEW_TEXT_MAX];

	for (uint32_t i = 0; i < site->n_args; i++) {
		const struct cairn_arg *arg = &site->args[i];
		bool bad = arg->loc.why != CAIRN_AVAILABLE;

		cairn_types_declare(view->types, arg->type, arg->name ? arg->name : "", declaration,
				    sizeof(declaration));
		view_location(view, &arg->loc, location, sizeof(location));
		print_spaces(view->out, indent);
		fputs_unlocked(declaration, view->out);
		print_spaces(view->out, width - (int)strlen(declaration));
		fputs_unlocked("  ", view->out);
		if (bad)
			fputs_unlocked(view->style.bad, view->out);
		fputs_unlocked(location, view->out);
		if (bad)
			fputs_unlocked(view->style.off, view->out);
		putc_unlocked('\n', view->out);
	}
}

static void print_site(const struct view *view, const struct cairn_function *function,
		       const struct cairn_site *site, int width)
{
	char address[256], place[VIEW_TEXT_MAX];
	struct line line = {place, sizeof(place), 0};
	int indent;

	view_address(view, site->at, address, sizeof(address));
	add_place(&line, function, site);
	indent = (int)strlen(address) + 4;
	fputs_unlocked("  ", view->out);
	fputs_unlocked(address, view->out);
	fputs_unlocked("  ", view->out);
	fputs_unlocked(place, view->out);
	putc_unlocked('\n', view->out);
	print_chain(view, site, indent);
	print_args(view, site, indent, width);
	if (site->n_shared > 1)
		fprintf(view->out, "%*sshares its address with %" PRIu32 " more of this function\n", indent, "",
			site->n_shared - 1);
	for (uint32_t bit = 1; bit && bit <= site->count_doubts; bit <<= 1)
		if (site->count_doubts & bit)
			fprintf(view->out, "%*s%s%s%s\n", indent, "", view->style.faint, cairn_count_doubt_text(bit),
				view->style.off);
	if (site->hazard != CAIRN_HAZARD_NONE)
		fprintf(view->out, "%*s%shazard: %s%s\n", indent, "", view->style.bad,
			cairn_hazard_text(site->hazard), view->style.off);
}

static void print_unknown(const struct view *view, const struct cairn_function *function)
{
	if (function->params_unknown)
		fprintf(view->out, "  %sno parameters are described: %s%s\n", view->style.faint,
			function->decl_file ? "assembler code" : "only the symbol table knows this function",
			view->style.off);
}

static void print_summary(const struct view *view, const struct cairn_function *function)
{
	static const char *const covered[N_COVERAGES] = {"all", "some", "none"};
	uint32_t kinds[3] = {0}, counts[N_COVERAGES] = {0}, doubtful = 0;
	const char *separator = " ";

	for (uint32_t i = 0; i < function->n_sites; i++) {
		kinds[function->sites[i].kind]++;
		doubtful += function->sites[i].count_doubts != 0;
		counts[site_coverage(&function->sites[i])]++;
	}
	fprintf(view->out, "  %s%" PRIu32 " %s: %" PRIu32 " %s, %" PRIu32 " inlined", view->style.faint,
		function->n_sites, function->n_sites == 1 ? "place" : "places", kinds[CAIRN_SITE_ENTRY],
		kinds[CAIRN_SITE_ENTRY] == 1 ? "body" : "bodies", kinds[CAIRN_SITE_INLINED]);
	if (kinds[CAIRN_SITE_PART])
		fprintf(view->out, ", %" PRIu32 " split off", kinds[CAIRN_SITE_PART]);
	if (doubtful)
		fprintf(view->out, "; %" PRIu32 " may not be passed as often as called", doubtful);
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

void sites_text(const struct view *view, const struct cairn_function *function)
{
	char declaration[VIEW_TEXT_MAX], source[512];
	int width = declaration_width(view, function);

	view_declaration(view, function, declaration, sizeof(declaration));
	view_source(function->decl_file, function->decl_line, 0, source, sizeof(source));
	fprintf(view->out, "%s%s%s  %s\n", view->style.name, declaration, view->style.off, source);
	for (uint32_t i = 0; i < function->n_sites; i++)
		print_site(view, function, &function->sites[i], width);
	print_unknown(view, function);
	print_summary(view, function);
}
