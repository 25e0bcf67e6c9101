/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of the running kernel
 *
 *	kernel:memcpy			code that the debug information does not describe
 *	kernel:vfs_write+0x1c		an instruction
 *
 * The symbols are those of /proc/kallsyms: a sidecar has no symbol table, and in a module some
 * symbols are nowhere else. What may be probed there is known of code that is in the file; of other
 * code the kernel says it, which looks at the boundaries of instructions, too.
 */
#include "trace/place/kernel_symbol.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "elf/elf.h"
#include "kernel/symbols.h"
#include "sites/spec.h"

static int ambiguous(const struct trace_file *f, const char *name, int n, struct cairn_err *err)
{
	return err_set(err, -ENOTUNIQ,
		       "%s has %d functions with the symbol %s, and nothing but their addresses "
		       "tells them apart",
		       f->shown, n, name);
}

/* Returns 1, 0 or an error. */
static int find(const struct trace_file *f, const char *name, struct kernel_code *ret,
		struct cairn_err *err)
{
	int n = kernel_code_find(f->kernel, name, ret, err);

	return n > 1 ? ambiguous(f, name, n, err) : n;
}

static enum cairn_hazard hazard_at(const struct trace_file *f, struct cairn_vaddr at, bool is_entry)
{
	const uint8_t *code;
	size_t n;

	if (!elf_code_at(binary_main(f->bin), at, &code, &n) || !n)
		return CAIRN_HAZARD_NONE;
	return cairn_hazard_at(f->bin, at, is_entry);
}

/* A function of one site; NULL: no memory. */
static struct cairn_function *make_function(struct cairn_trace *t, const char *name,
					    const struct cairn_site *site)
{
	struct cairn_function *function = arena_alloc(&t->arena, sizeof(*function));
	struct cairn_site *copy = arena_alloc(&t->arena, sizeof(*copy));

	if (!function || !copy)
		return NULL;
	*copy = *site;
	*function = (struct cairn_function){
		.name = name, .params_unknown = true, .n_sites = 1, .sites = copy};
	return function;
}

static int no_code(const struct trace_file *f, const char *name, struct cairn_err *err)
{
	return err_set(err, -ENXIO, "%s of %s is in no section of code that stays", name, f->shown);
}

/* Where @off bytes of the symbol's code are in the source. */
static int make_site(const struct trace_file *f, const char *name, const struct kernel_code *code,
		     uint64_t off, struct cairn_site *ret, struct cairn_err *err)
{
	*ret = (struct cairn_site){.kind = CAIRN_SITE_PLACE,
				   .rule = CAIRN_AT_GIVEN,
				   .symbol = name,
				   .symbol_off = off,
				   .n_shared = 1};
	if (off >= code->end - code->at)
		return err_set(err, -ENXIO, "%s+0x%" PRIx64 " is not in the code of %s", name, off,
			       name);
	if (!cairn_kernel_link_address(f->kernel, code->at + off, &ret->at))
		return no_code(f, name, err);
	ret->hazard = hazard_at(f, ret->at, !off);
	return 0;
}

int kernel_symbol_resolve(struct cairn_trace *t, const struct trace_file *f, const char *spec,
			  struct trace_targets *ret, struct cairn_err *err)
{
	struct kernel_code code;
	struct cairn_site site;
	struct trace_target *target = arena_alloc(&t->arena, sizeof(*target));
	const struct cairn_function *function;

	/* No symbol says which file it is of, and patterns are of functions. */
	if (spec_colon(spec, spec + strlen(spec)) || cairn_sites_is_pattern(spec))
		return 0;
	int n = find(f, spec, &code, err);
	int e = n > 0 ? make_site(f, spec, &code, 0, &site, err) : n;
	if (e < 0 || !n)
		return e;
	site.kind = CAIRN_SITE_OUT_OF_LINE;
	site.rule = CAIRN_AT_SYMBOL;
	function = make_function(t, spec, &site);
	if (!target || !function)
		return err_nomem(err, "a probe");
	e = symbol_target(t, f, function, target, err);
	target->is_symbol = true;
	*ret = (struct trace_targets){.p = target, .n = 1, .found = CAIRN_FOUND_NAME};
	return e < 0 ? e : 1;
}

int kernel_symbol_offset(const struct trace_file *f, const char *name, uint64_t off,
			 struct cairn_site *ret, struct cairn_err *err)
{
	struct kernel_code code;
	int n = find(f, name, &code, err);

	if (n > 0)
		return make_site(f, name, &code, off, ret, err);
	if (n < 0)
		return n;
	return err_set(err, -ENXIO,
		       "%s has no symbol %s in /proc/kallsyms; an offset is counted from one",
		       f->shown, name);
}
