/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments of the functions of a stack
 *
 * A frame is in the middle of a function. Arguments are known there from a sidecar that was made
 * with --args, or from the debug information; both give the same answers. Both give the functions
 * of an address, innermost first. They are matched by name with the functions in the frame's name;
 * if they do not agree, nothing is shown.
 */
#include <stdlib.h>
#include <string.h>

#include <cairn/decode.h>

#include "cmd.h"
#include "say.h"
#include "stack.h"

enum {
	VALUE_BYTES_MAX = 1 << 16,
	ELEMS_MAX = 16, /* of an array in a struct that was passed */
};

/* The debug information of a file. */
struct stack_debug {
	const struct cairn_binary *bin;
	/* the same file with a debug file that was fetched; NULL: @bin has its own */
	struct cairn_binary *whole;
	struct cairn_sites *sites; /* NULL: it has none */
	bool is_sidecar;           /* sites are its sidecar's */
};

/*
 * The file with the debug file that a debuginfod has of it; NULL: no request was made, or it has
 * none.
 */
static struct cairn_binary *fetched(const struct stack_names *names, const struct cairn_binary *bin)
{
	struct sidecar_wish wish = names->wish;
	struct cairn_binary *whole = NULL;
	struct cairn_err err = {0};

	wish.debuginfod = names->debuginfod;
	char *path = cairn_binary_has_dwarf(bin) ? NULL : sidecar_debug_file(bin, &wish);
	struct cairn_binary_opts opts = {.size = sizeof(opts), .debug_file = path};

	if (path && cairn_binary_open(cairn_binary_path(bin), &opts, &whole, &err) < 0) {
		whole = NULL;
		fail_told(STATUS_YES, &err);
	}
	free(path);
	return whole;
}

static bool has_args(const struct cairn_stack_frame *frame)
{
	return frame->sidecar && cairn_sidecar_has_args(frame->sidecar);
}

static void say_none(const struct cairn_binary *bin, const char *why)
{
	say(stderr, "%s: no arguments: ", cairn_binary_path(bin));
	fprintf(stderr, "%s\n", why);
}

static struct cairn_sites *open_sites(const struct stack_names *names,
				      const struct cairn_stack_frame *frame,
				      const struct cairn_binary *bin)
{
	struct cairn_sites_opts opts = {.size = sizeof(opts), .threads = names->wish.jobs};
	struct cairn_sites *sites = NULL;
	struct cairn_err err = {0};
	int r = cairn_binary_has_dwarf(bin) ? cairn_sites_open(bin, &opts, &sites, &err) : 0;

	/*
	 * If there is a sidecar, its names and lines would look as if nothing was missing; those
	 * that a walk left in the cache have no sites.
	 */
	if (!cairn_binary_has_dwarf(bin) && frame->sidecar)
		say_none(bin,
			 "its debug information is not here, and its sidecar was made without "
			 "them. Where the debug information is, cairn sidecar --args FILE makes "
			 "one that has them; --debuginfod downloads the debug information");
	if (r < 0)
		say_none(bin, err.msg);
	return r < 0 ? NULL : sites;
}

/* From the sidecar; false: it cannot, and that is reported. */
static bool open_sidecar(const struct cairn_stack_frame *frame, struct stack_debug *debug)
{
	struct cairn_err err = {0};

	if (cairn_sidecar_sites(frame->sidecar, frame->bin, &debug->sites, &err) < 0) {
		say_none(frame->bin, err.msg);
		return false;
	}
	debug->is_sidecar = true;
	return true;
}

static void open_debug(const struct stack_names *names, const struct cairn_stack_frame *frame,
		       struct stack_debug *debug)
{
	debug->whole = names->debuginfod ? fetched(names, frame->bin) : NULL;
	debug->sites = open_sites(names, frame, debug->whole ? debug->whole : frame->bin);
}

static struct stack_debug *debug_of(struct stack_names *names,
				    const struct cairn_stack_frame *frame)
{
	struct stack_debug *grown;

	for (size_t i = 0; i < names->n_debug; i++)
		if (names->debug[i].bin == frame->bin)
			return &names->debug[i];
	grown = realloc(names->debug, (names->n_debug + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	names->debug = grown;
	grown += names->n_debug++;
	*grown = (struct stack_debug){.bin = frame->bin};
	if (!has_args(frame) || !open_sidecar(frame, grown))
		open_debug(names, frame, grown);
	return grown;
}

/*
 * As cairn_sites_at(); 0 if no query is possible, or not again. A sidecar that cannot answer gives
 * way to the debug information.
 */
static int ask(struct stack_names *names, const struct cairn_stack_frame *frame,
	       struct stack_debug *debug, const struct cairn_scope **ret)
{
	struct cairn_vaddr pc = {frame->vaddr.v + !frame->is_exact};
	struct cairn_err err = {0};

	while (debug->sites) {
		int n = cairn_sites_at(debug->sites, pc, frame->is_exact, ret, &err);
		bool is_sidecar = debug->is_sidecar;

		if (n >= 0)
			return n;
		say_none(frame->bin, err.msg);
		cairn_sites_close(debug->sites);
		debug->sites = NULL;
		debug->is_sidecar = false;
		if (is_sidecar && cairn_binary_has_dwarf(frame->bin))
			open_debug(names, frame, debug);
	}
	return 0;
}

/*
 * Whether both tell the same functions; of a frame that has its symbol only, the outermost is the
 * one.
 */
static bool agree(const struct stack_place *place, const struct cairn_scope *active, size_t n)
{
	if (place->n != n)
		return false;
	for (size_t i = 0; i + 1 < n; i++)
		if (!place->functions[i].name || !active[i].name ||
		    strcmp(place->functions[i].name, active[i].name) != 0)
			return false;
	return true;
}

void stack_args_find(struct stack_names *names, const struct cairn_thread_stack *thread,
		     size_t number, struct stack_place *place)
{
	const struct cairn_stack_frame *frame = thread->frames[number];
	const struct cairn_scope *active;
	struct stack_debug *debug;
	int n;

	if (!names->with_args || !frame->bin || !place->n)
		return;
	debug = debug_of(names, frame);
	n = debug ? ask(names, frame, debug, &active) : 0;
	place->sites = debug ? debug->sites : NULL;
	names->thread = thread;
	names->frame = number;
	if (n > 0 && place->n == 1)
		active += n - 1;
	if (n > 0 && (place->n == 1 || agree(place, active, (size_t)n))) {
		place->has_active = true;
		place->active = active;
	}
}

void stack_args_fini(struct stack_names *names)
{
	for (size_t i = 0; i < names->n_debug; i++) {
		cairn_sites_close(names->debug[i].sites);
		cairn_binary_close(names->debug[i].whole);
	}
	free(names->debug);
}

/* ---- values ---- */

/* The value in *@ret, which is the caller's; or the reason. */
static enum cairn_unavailable read_value(const struct stack_names *names, struct cairn_sites *sites,
					 const struct cairn_arg *arg, void **ret, size_t *ret_n)
{
	enum cairn_unavailable why = arg->loc.why;
	uint64_t n;

	if (why != CAIRN_AVAILABLE)
		return why;
	if (cairn_sites_complete_type(sites, arg->type, NULL) < 0)
		return CAIRN_UNAVAIL_DAMAGED;
	n = cairn_types_size(cairn_sites_types(sites), arg->type);
	if (!n || n > VALUE_BYTES_MAX)
		return CAIRN_UNAVAIL_UNSUPPORTED;
	*ret = calloc(1, n);
	if (!*ret)
		return CAIRN_UNAVAIL_UNSUPPORTED;
	*ret_n = n;
	why = cairn_stacks_value(names->with_args, names->thread, names->frame, sites, &arg->loc,
				 *ret, n);
	if (why != CAIRN_AVAILABLE)
		free(*ret);
	return why;
}

static void put_value(FILE *out, struct cairn_sites *sites, const struct cairn_arg *arg,
		      const void *value, size_t n, enum cairn_value_style style)
{
	struct cairn_value_opts opts = {.size = sizeof(opts),
					.style = style,
					.max_elems = ELEMS_MAX,
					/*
					 * The targets of strings and vectors are not read from the
					 * stopped process.
					 */
					.raw = true};

	cairn_value_print(cairn_sites_types(sites), arg->type, value, n, &opts, out);
}

void stack_args_text(FILE *out, const struct stack_names *names, const struct stack_place *place,
		     size_t i)
{
	if (!place->has_active)
		return;
	fputs(" (", out);
	for (uint32_t k = 0; k < place->active[i].n_args; k++) {
		const struct cairn_arg *arg = &place->active[i].args[k];
		void *value = NULL;
		size_t n = 0;
		enum cairn_unavailable why = read_value(names, place->sites, arg, &value, &n);

		say(out, "%s%s=", k ? ", " : "", arg->name ? arg->name : "?");
		if (why != CAIRN_AVAILABLE) {
			fprintf(out, "<unavailable: %s>", cairn_unavailable_text(why));
			continue;
		}
		put_value(out, place->sites, arg, value, n, CAIRN_VALUE_TEXT);
		free(value);
	}
	fputc(')', out);
}

static void json_arg(struct json *j, const struct stack_names *names, struct cairn_sites *sites,
		     const struct cairn_arg *arg)
{
	char type[256];
	void *value = NULL;
	size_t n = 0;
	enum cairn_unavailable why = read_value(names, sites, arg, &value, &n);

	json_open(j, NULL, '{');
	json_text(j, "name", arg->name);
	cairn_types_name(cairn_sites_types(sites), arg->type, type, sizeof(type));
	json_text(j, "type", type);
	if (why != CAIRN_AVAILABLE) {
		json_text(j, "unavailable", cairn_unavailable_id(why));
	} else {
		json_key(j, "value");
		put_value(j->out, sites, arg, value, n, CAIRN_VALUE_JSON);
		free(value);
	}
	json_close(j);
}

void stack_args_json(struct json *j, const struct stack_names *names,
		     const struct stack_place *place, size_t i)
{
	if (!place->has_active) {
		json_null(j, "args");
		return;
	}
	json_open(j, "args", '[');
	for (uint32_t k = 0; k < place->active[i].n_args; k++)
		json_arg(j, names, place->sites, &place->active[i].args[k]);
	json_close(j);
}
