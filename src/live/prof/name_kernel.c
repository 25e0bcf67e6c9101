/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames in the kernel: by its own list of symbols, /proc/kallsyms. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/scope.h"
#include "base/search.h"
#include "prof/name_impl.h"

/* A kernel with all modules has 250,000 symbols in 12 MB. */
#define TEXT_MAX ((size_t)1 << 28)

/* No function of a kernel is larger: what is farther from its symbol is between two parts. */
#define FUNCTION_MAX (1u << 20)

/* Where the kernel's half of the addresses begins. */
#define KERNEL_HALF (1ULL << 63)

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

/* A BPF program, or what leads to one. */
static bool is_of_tracepoint(const struct kernel_symbol *s)
{
	static const char *const begins[] = {"bpf_trace_run", "__bpf_trace_", "__traceiter_",
					     "perf_trace_", "trace_call_bpf"};

	if (s->module && !strcmp(s->module, "[bpf]"))
		return true;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(s->name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

size_t kernel_names_skip(const struct kernel_names *k, const uint64_t *frames, size_t n)
{
	size_t skip = 0;

	for (; skip < n; skip++) {
		const struct kernel_symbol *s = kernel_names_find(k, frames[skip]);

		if (!s || !is_of_tracepoint(s))
			break;
	}
	return skip;
}

static int note_hidden(struct naming *n)
{
	return prof_names_add_note(n->names,
				   "kernel functions have no names: /proc/kallsyms does not show "
				   "addresses here; as root: sysctl kernel.kptr_restrict=1");
}

/* The half of the kernel: an address in it is shown as it is. */
static int mapping_of(struct naming *n, const struct kernel_symbol *s, uint32_t *ret,
		      struct cairn_err *err)
{
	struct cairn_profile_mapping m = {.start = KERNEL_HALF,
					  .limit = UINT64_MAX,
					  .offset = KERNEL_HALF,
					  .code = CAIRN_PROFILE_KERNEL};

	if (n->names->kernel.is_hidden)
		m.path = "[kernel]";
	else
		m.path = s && s->module ? s->module : "[kernel.kallsyms]";
	return cairn_profile_add_mapping(n->p, &m, ret, err);
}

int location_in_kernel(struct naming *n, uint64_t at, uint32_t *ret, struct cairn_err *err)
{
	const char *path = n->names->opts->kallsyms;
	struct kernel_names *k = &n->names->kernel;
	struct cairn_profile_location l = {.address = at};
	struct cairn_profile_line line = {0};
	const struct kernel_symbol *s;
	int rc = kernel_names_read(k, path ? path : "/proc/kallsyms");

	if (rc == 0 && k->is_hidden)
		rc = note_hidden(n);
	if (rc < 0)
		return err_nomem(err, "the kernel's symbols");
	s = kernel_names_find(k, at);
	rc = mapping_of(n, s, &l.mapping, err);
	if (rc == 0 && s) {
		rc = add_plain_function(n, s->name, NULL, &line.function, err);
		l.symbol = s->at;
		l.lines = &line;
		l.n_lines = 1;
	}
	return rc < 0 ? rc : cairn_profile_add_location(n->p, &l, ret, err);
}
