/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pattern has thousands of functions, and each may have hundreds of copies. What is said of too
 * many places is to be of use: how many they are, and the source file that has most of those that
 * fit.
 */
#include "trace/place/kernel_limit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cairn/text.h>

#include "sites/spec.h"
#include "trace/plan/plan.h"

#define FILE_BYTES 200

/* Functions come in the order of their files. */
struct tally {
	const struct trace_file *f;
	uint64_t most; /* that fit */
	uint64_t n, n_file, n_best;
	char file[FILE_BYTES], best[FILE_BYTES];
};

static uint64_t places_of(const struct trace_file *f, const struct cairn_function *function)
{
	uint64_t address, n = 0;

	for (uint32_t i = 0; i < function->n_sites; i++)
		n += !plan_is_no_call(&function->sites[i]) &&
		     cairn_kernel_address(f->kernel, function->sites[i].at, &address);
	return n;
}

static void end_file(struct tally *c)
{
	if (c->file[0] && c->n_file > c->n_best && c->n_file <= c->most) {
		c->n_best = c->n_file;
		memcpy(c->best, c->file, sizeof(c->best));
	}
	c->n_file = 0;
}

static int count(void *ctx, const struct cairn_function *function)
{
	struct tally *c = ctx;
	const char *file = function->decl_file ? function->decl_file : "";
	uint64_t n = places_of(c->f, function);

	if (strlen(file) >= FILE_BYTES)
		file = "";
	if (strcmp(c->file, file) != 0) {
		end_file(c);
		snprintf(c->file, sizeof(c->file), "%s", file);
	}
	c->n += n;
	c->n_file += n;
	return 0;
}

/* What to type instead: a pattern of one file. */
static void advise(const struct tally *c, const char *spec, char *buf, size_t size)
{
	bool is_of_file = spec_colon(spec, spec + strlen(spec)) != NULL;

	if (c->n_best && !is_of_file && cairn_sites_is_pattern(spec))
		snprintf(buf, size, "the most that fit of one file are %s: %s%s%s:%s",
			 cairn_counted(c->n_best, "place").text, c->f->module ? c->f->module : "",
			 c->f->module ? ":" : "", c->best, spec);
	else
		snprintf(buf, size,
			 "name fewer functions; cairn sites --running FUNC counts the places of "
			 "one");
}

static int tell(const struct cairn_trace *t, const struct tally *c, const char *probe,
		const char *spec, struct cairn_err *err)
{
	char before[80] = "", advice[2 * FILE_BYTES + 200];

	if (t->sites.n)
		snprintf(before, sizeof(before), ", and the probes before it %zu", t->sites.n);
	advise(c, spec, advice, sizeof(advice));
	return err_set(
		err, -ERANGE,
		"%s: it has %s in the kernel%s; a trace has at most %d, as each inlined copy "
		"is a probe of its own, which the kernel sets and removes one by one; %s",
		probe, cairn_counted(c->n, "place").text, before, KERNEL_SITES_MAX, advice);
}

static struct tally begin(const struct cairn_trace *t, const struct trace_file *f)
{
	return (struct tally){.f = f, .most = KERNEL_SITES_MAX - t->sites.n};
}

int kernel_limit_check(const struct cairn_trace *t, const struct trace_file *f,
		       const struct cairn_function_list *list, const char *probe, const char *spec,
		       struct cairn_err *err)
{
	struct tally c = begin(t, f);

	for (size_t i = 0; i < list->n; i++)
		count(&c, list->p[i]);
	end_file(&c);
	return c.n > c.most ? tell(t, &c, probe, spec, err) : 0;
}

int kernel_limit_exceeded(const struct cairn_trace *t, const struct trace_file *f,
			  const char *probe, const char *spec, struct cairn_err *err)
{
	struct tally c = begin(t, f);
	int e = cairn_sites_visit_matching(f->sites, spec, count, &c, err);

	if (e < 0)
		return e;
	end_file(&c);
	return tell(t, &c, probe, spec, err);
}
