/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of a kernel's code by address: its own list, /proc/kallsyms. */
#include "kernel/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/search.h"
#include "kernel/kernel.h"

/* A kernel with all modules has 250,000 symbols in 12 MB. */
#define TEXT_MAX ((size_t)1 << 28)

/* No function of a kernel is larger: what is farther from its symbol is between two parts. */
#define FUNCTION_MAX (1u << 20)

/* The file has no size before it is read. *@ret_n is 0 where it cannot be read. */
static int read_text(const char *path, char **ret, size_t *ret_n)
{
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t cap = (size_t)1 << 20;
	ssize_t got = 1;

	*ret_n = 0;
	*ret = malloc(cap + 1);
	while (*ret && fd >= 0 && got > 0 && *ret_n < TEXT_MAX) {
		if (*ret_n == cap) {
			char *grown = realloc(*ret, cap * 2 + 1);

			if (!grown)
				return -ENOMEM;
			*ret = grown;
			cap *= 2;
		}
		got = read(fd, *ret + *ret_n, cap - *ret_n);
		*ret_n += got > 0 ? (size_t)got : 0;
	}
	if (!*ret)
		return -ENOMEM;
	(*ret)[*ret_n] = '\0';
	return 0;
}

/* "ffffffff81000000 T _stext\t[module]", with its end as NUL. False: of no code, or no symbol. */
static bool parse_line(char *line, struct kernel_symbol *ret)
{
	char *end, *tab;

	ret->at = strtoull(line, &end, 16);
	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ' || !strchr("tTwW", end[1]))
		return false;
	ret->name = end + 3;
	tab = strchr(end + 3, '\t');
	ret->module = NULL;
	if (tab) {
		*tab = '\0';
		ret->module = tab + 1;
	}
	return *ret->name;
}

static int by_address(const void *a, const void *b)
{
	const struct kernel_symbol *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int parse(struct kernel_names *k, size_t n)
{
	size_t n_zero = 0;

	for (char *line = k->text, *end; line < k->text + n; line = end + 1) {
		struct kernel_symbol s;

		end = memchr(line, '\n', n - (size_t)(line - k->text));
		end = end ? end : k->text + n;
		*end = '\0';
		if (!parse_line(line, &s))
			continue;
		n_zero += !s.at;
		if (s.at && !VEC_ADD(&k->symbols, s))
			return -ENOMEM;
	}
	k->is_hidden = !k->symbols.n && (n_zero || !n);
	if (k->symbols.n)
		qsort(k->symbols.p, k->symbols.n, sizeof(*k->symbols.p), by_address);
	return 0;
}

int kernel_names_read(struct kernel_names *k, const char *path)
{
	size_t n;
	int rc;

	if (k->is_read)
		return 0;
	rc = read_text(path, &k->text, &n);
	if (rc == 0)
		rc = parse(k, n);
	if (rc < 0) {
		kernel_names_fini(k);
		return rc;
	}
	k->is_read = true;
	return 0;
}

void kernel_names_fini(struct kernel_names *k)
{
	free(k->text);
	VEC_FREE(&k->symbols);
	*k = (struct kernel_names){0};
}

const struct kernel_symbol *kernel_names_find(const struct kernel_names *k, uint64_t at)
{
	size_t n = SEARCH((size_t)0, k->symbols.n, i, k->symbols.p[i].at <= at);
	const struct kernel_symbol *s = n ? &k->symbols.p[n - 1] : NULL;

	/* The first of several names of one address. */
	while (s && s > k->symbols.p && s[-1].at == s->at)
		s--;
	return s && at - s->at < FUNCTION_MAX ? s : NULL;
}

/* ---- by name ---- */

struct search {
	const struct cairn_kernel *kernel;
	const char *name;
	struct kernel_code found;
	int n; /* addresses */
};

static bool is_of(const struct search *s, const struct kallsym *symbol)
{
	return kallsym_is_code(symbol) && kallsyms_is_own(s->kernel, symbol);
}

static int take_name(void *ctx, const struct kallsym *symbol)
{
	struct search *s = ctx;

	if (!is_of(s, symbol) || strcmp(symbol->name, s->name) ||
	    (s->n && symbol->at == s->found.at))
		return 0;
	if (!s->n)
		s->found.at = symbol->at;
	s->n++;
	return 0;
}

static int take_end(void *ctx, const struct kallsym *symbol)
{
	struct search *s = ctx;

	if (is_of(s, symbol) && symbol->at > s->found.at && symbol->at < s->found.end)
		s->found.end = symbol->at;
	return 0;
}

int kernel_code_find(const struct cairn_kernel *k, const char *name, struct kernel_code *ret,
		     struct cairn_err *err)
{
	struct search s = {.kernel = k, .name = name};
	int rc = kallsyms_read(k, take_name, &s, err);

	s.found.end = s.found.at + FUNCTION_MAX;
	if (rc >= 0 && s.n)
		rc = kallsyms_read(k, take_end, &s, err);
	*ret = s.found;
	return rc < 0 ? rc : s.n;
}
