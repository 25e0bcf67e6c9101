/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Planning: from a probe to sites and programs
 *
 * A probe determines which values are fetched and the position of each value in its records. Both
 * depend on types only, so they are the same at every site. A site adds how the values get there.
 * So decoding needs to know only which values the site has.
 *
 * The promise "never miss silently" decides which sites are refused: for a hazard, an address
 * outside of the file, and a listed value or a condition that is not available there. A value that
 * was not listed never refuses; it is shown as unavailable with its reason.
 */
#include "trace/plan/plan.h"

#include <errno.h>

#include "elf/elf.h"
#include "insn/insn.h"
#include "sites/quirks/icf_args.h"
#include "sites/usdt.h"
#include "trace/aggregate/aggregate.h"
#include "trace/attach/returns.h"
#include "trace/locate.h"
#include "trace/place/in_kernel.h"
#include "trace/place/move.h"

bool plan_is_no_call(const struct cairn_site *site)
{
	return site->kind == CAIRN_SITE_PART || site->count_caveats & CAIRN_COUNT_MERGED;
}

/* Not from the debug information, which took over when a sidecar did not know something. */
static bool is_from_sidecar(const struct trace_file *f)
{
	return f->sidecar && !f->sidecar_sites;
}

/*
 * Whatever the source of the site: an instruction must begin there, in the mapped file, and it must
 * be the described one.
 */
static void check_code(const struct trace_probe *p, struct trace_site *site)
{
	struct trace_file *f = p->file;

	/* What describes a kernel was compared with what runs, and need not have its code. */
	if (f->kernel)
		return;
	if (is_from_sidecar(f) && !cairn_sidecar_is_bound(f->sidecar))
		site->pub.refused =
			"the sidecar is unbound: it was made of a debug file alone, and cannot be "
			"compared with the code here; make it with: cairn sidecar PROGRAM";
	if (site->pub.refused)
		return;
	if (boundary_at(&f->walk, f->bin, f->mover, site->pub.at) == BOUNDARY_NO)
		site->pub.refused = cairn_hazard_text(CAIRN_HAZARD_NOT_A_BOUNDARY);
	else if (is_from_sidecar(f) && !cairn_sidecar_covers(f->sidecar, site->pub.at))
		site->pub.refused = "the sidecar is of another file: the code there differs";
}

/* A program may compute arguments, or come past a probe at all, only with its semaphore set. */
static void plan_semaphore(const struct trace_probe *p, const struct cairn_site *site,
			   struct trace_site *planned)
{
	uint64_t at = p->semaphores ? p->semaphores[site - p->pub.function->sites] : 0;

	if (at == USDT_SEMAPHORE_NOWHERE)
		planned->pub.refused =
			"its semaphore is not in the file, so the kernel cannot set it";
	else
		planned->semaphore = at;
}

/*
 * Linux 6.18 makes a call of a 5-byte nop, to a page that children do not inherit:
 * docs/findings/uprobe-nop5-ends-children.md. insn_uprobe() knows such nops by their hazard.
 */
static void judge_insn(struct trace_site *planned, struct insn_uprobe probe)
{
	planned->is_long_nop = probe.hazard == CAIRN_HAZARD_NOP5_RED_ZONE;
	planned->pub.emulated = probe.emulated;
	if (planned->is_long_nop && !planned->pub.refused)
		planned->pub.refused =
			"a probe on this 5-byte nop ends children that the program forks";
}

/* False: the site is left out. */
static bool plan_site(const struct trace_probe *p, const struct cairn_site *site, bool best_effort,
		      struct trace_site *planned)
{
	const uint8_t *code;
	size_t n_code;

	if (p->file->kernel)
		return in_kernel_plan(p, site, best_effort, planned);
	planned->pub.site = site;
	planned->pub.at = site->at;
	planned->pub.off = site->off;
	plan_semaphore(p, site, planned);
	if (!site->has_off)
		planned->pub.refused = "its address is not in the file";
	else if (site->hazard != CAIRN_HAZARD_NONE)
		planned->pub.refused = cairn_hazard_text(site->hazard);
	else if (site->count_caveats & CAIRN_COUNT_NO_ENTRY && !best_effort)
		planned->pub.refused = cairn_count_caveat_text(CAIRN_COUNT_NO_ENTRY);
	if (elf_code_at(binary_main(p->file->bin), site->at, &code, &n_code))
		judge_insn(planned, insn_uprobe(code, n_code));
	else if (!planned->pub.refused)
		planned->pub.refused = cairn_hazard_text(CAIRN_HAZARD_NOT_A_BOUNDARY);
	return true;
}

/* A planned that is refused for nothing but the instruction that stands there. */
static bool may_move_off(const struct cairn_trace *t, const struct trace_site *planned)
{
	const struct cairn_site *site = planned->pub.site;

	return site->has_off && (site->hazard != CAIRN_HAZARD_NONE || planned->is_long_nop) &&
	       site->hazard != CAIRN_HAZARD_NOT_A_BOUNDARY && site->hazard != CAIRN_HAZARD_TRAP &&
	       (t->opts.best_effort || !(site->count_caveats & CAIRN_COUNT_NO_ENTRY));
}

static int move_site(struct cairn_trace *t, struct trace_probe *p, struct trace_site *site,
		     struct cairn_err *err)
{
	const char *refused = site->pub.refused;
	struct fetch_program program;

	/* A return probe needs the return address where the entry has it. */
	if (site->follows || (refused ? !may_move_off(t, site) : site->pub.emulated))
		return 0;
	site->pub.refused = NULL;
	int r = plan_site_program(t, p, site, &program, err);
	if (r == 0 && !site->pub.refused && mover_add(p->file->mover, site, &program) < 0)
		r = err_nomem(err, "moving probes");
	/* Until it has been moved. */
	if (refused)
		site->pub.refused = refused;
	return r;
}

/*
 * If it is exact, probes go to instructions that the kernel need not single-step, and off those
 * with a hazard.
 */
static int move_sites(struct cairn_trace *t, struct trace_probe *p, uint32_t n,
		      struct cairn_err *err)
{
	if (!p->file->mover || t->opts.no_move)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		int r = move_site(t, p, &p->sites[i], err);
		if (r < 0)
			return r;
	}
	mover_finish(p->file->mover);
	return 0;
}

static int finish_site(struct cairn_trace *t, struct trace_probe *p, struct trace_site *site,
		       struct cairn_err *err)
{
	struct fetch_program program;
	int r = plan_site_program(t, p, site, &program, err);

	if (r == 0 && !site->pub.refused)
		r = plan_keep_program(t, &program, plan_first_condition(p) != NULL,
				      &site->pub.program, err);
	if (r == 0 && site->follows)
		r = plan_return_program(t, p, site, &program, err);
	if (r == 0 && site->follows && !site->pub.refused)
		r = plan_keep_program(t, &program, p->returns->at_return != NULL,
				      &site->return_program, err);
	if (r < 0)
		return r;
	p->pub.n_ready += !site->pub.refused;
	p->pub.n_refused += site->pub.refused != NULL;
	return VEC_ADD(&t->sites, site) ? 0 : err_nomem(err, "sites");
}

/* One call passes all sites that are one, and makes one event: that of the first. */
static bool is_another_name_of_the_same(const struct cairn_function *f, uint32_t i)
{
	for (uint32_t k = i; k-- > 0 && f->sites[k].at.v == f->sites[i].at.v;)
		if (!plan_is_no_call(&f->sites[k]) &&
		    icf_args_are_one_call(&f->sites[k], &f->sites[i]))
			return true;
	return false;
}

static int plan_sites(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	const struct cairn_function *f = p->pub.function;
	uint32_t n = 0;

	if (f->n_sites > TRACE_SITES_MAX - t->sites.n)
		return err_set(err, -ERANGE, "%s has %u sites; a trace has at most %u sites",
			       f->name, f->n_sites, TRACE_SITES_MAX);
	p->sites = arena_array(&t->arena, f->n_sites + 1u, sizeof(*p->sites));
	if (!p->sites)
		return err_nomem(err, "sites");
	p->pub.first_site = (uint32_t)t->sites.n;
	/* A file with damaged unwind tables can be traced, but nothing in it moved. */
	if (!p->file->kernel && !p->file->mover &&
	    mover_new(p->file->bin, &p->file->mover, NULL) < 0)
		p->file->mover = NULL;
	for (uint32_t i = 0; i < f->n_sites; i++) {
		if (plan_is_no_call(&f->sites[i]) || is_another_name_of_the_same(f, i))
			continue;
		p->sites[n].pub.probe = (uint32_t)t->probes.n;
		if (!plan_site(p, &f->sites[i], t->opts.best_effort, &p->sites[n])) {
			p->pub.n_left_out++;
			continue;
		}
		check_code(p, &p->sites[n]);
		if (returns_plan_site(t, p, &p->sites[n++], err) < 0)
			return -ENOMEM;
	}
	p->pub.n_sites = n;
	int r = p->file->kernel ? in_kernel_check_sites(t, p, err) : 0;
	if (r < 0)
		return r;
	if (!n)
		return err_set(err, -ENXIO,
			       "%s has no code: no body and no inlined copy is left of it",
			       f->name);
	r = move_sites(t, p, n, err);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		/* At the moved site, the code may belong to another page. */
		if (p->sites[i].pub.at.v != p->sites[i].pub.site->at.v)
			check_code(p, &p->sites[i]);
		r = finish_site(t, p, &p->sites[i], err);
	}
	return r;
}

/* What hits have. */
static int plan_contents(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	if (t->aggregates)
		return aggregate_plan_probe(t, p, err);
	if (t->weighs)
		return plan_weight(t, p, err);
	if (!t->locates)
		return plan_values(t, p, err);
	unsigned int class;
	p->n_record = trace_record_class(sizeof(struct trace_record), &class);
	return locate_plan(t, p, err);
}

int plan_probe(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	size_t sites = t->sites.n;
	int r = plan_contents(t, p, err);

	if (r == 0)
		r = plan_sites(t, p, err);
	/* Unused programs stay; they are harmless. */
	if (r < 0)
		t->sites.n = sites;
	return r;
}
