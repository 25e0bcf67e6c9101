/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile as one page with a flame graph: flame.html, with the tree of all stacks in it. */
#include "export/profile_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <cairn/text.h>

static const struct {
	const char *text;
	char mark; /* 'T': the title, 'P': the profile, where text is NULL */
} page[] = {
#include "flame.h"
};

#define INLINED 4 /* flag of a frame's kind, as flame.html knows it */

/* A function as a frame shows it. */
struct frame {
	const char *name, *quoted;
	uint32_t module;
	uint32_t kind; /* enum cairn_profile_code, and INLINED */
};

/* A frame with the frames above it. */
struct node {
	uint32_t parent; /* 1 + index; 0: the outermost */
	uint32_t frame;
	int64_t self, before; /* in the profile, and in the one that it is compared with */
};

/* The frames of a location in its stacks: part of the array of all. */
struct location_frames {
	uint32_t first, n; /* the outermost first; n 0: not made yet */
};

struct graph {
	const struct cairn_profile *p; /* whose samples are added */
	struct location_frames *locations;
	VEC(uint32_t) location_frames;
	uint32_t module; /* of the location whose frames are added */
	struct arena arena;
	VEC(const char *) modules, quoted_modules;
	VEC(struct frame) frames;
	VEC(struct node) nodes;
	struct map module_ids, frame_ids, node_ids;
	const char *value, *unit; /* of the numbers, quoted */
	size_t n_stacks;
	bool is_diff;
};

/*
 * The name between "..." of a script. There "<" begins a tag to the page's reader, whatever the
 * script says. NULL: out of memory.
 */
static const char *quoted(struct graph *g, const char *name)
{
	ssize_t n = cairn_quote(name, CAIRN_QUOTE_JSON, NULL, 0);
	char *text = n < 0 ? NULL : arena_alloc(&g->arena, (size_t)n + 1);
	char *script = n < 0 ? NULL : arena_alloc(&g->arena, (size_t)n * 6 + 1), *to = script;

	if (!text || !script)
		return NULL;
	cairn_quote(name, CAIRN_QUOTE_JSON, text, (size_t)n + 1);
	for (const char *c = text; *c; c++)
		to = *c == '<' ? stpcpy(to, "\\u003c") : (*to = *c, to + 1);
	return script;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Index, or negative when out of memory. */
static int64_t module_of(struct graph *g, const struct cairn_profile_location *l)
{
	const struct cairn_profile_mapping *m = cairn_profile_mapping(g->p, l->mapping);
	const char *name = m ? base_name(m->path) : "";
	uint64_t hash = map_hash_str(name), at;
	const char *script;

	for (; map_get(&g->module_ids, hash, &at); hash++)
		if (!strcmp(g->modules.p[at], name))
			return (int64_t)at;
	script = quoted(g, name);
	if (!script || !VEC_ADD(&g->modules, name) || !VEC_ADD(&g->quoted_modules, script) ||
	    map_put(&g->module_ids, hash, g->modules.n - 1) < 0)
		return -ENOMEM;
	return (int64_t)g->modules.n - 1;
}

static int64_t frame_of(struct graph *g, const char *name, uint32_t module, uint32_t kind)
{
	uint64_t hash = map_hash_str(name) + module * 8 + kind, at;
	const char *own, *script;

	for (; map_get(&g->frame_ids, hash, &at); hash++) {
		const struct frame *f = &g->frames.p[at];

		if (f->module == module && f->kind == kind && !strcmp(f->name, name))
			return (int64_t)at;
	}
	own = arena_strdup(&g->arena, name);
	script = quoted(g, name);
	if (!own || !script || !VEC_ADD(&g->frames, ((struct frame){own, script, module, kind})) ||
	    map_put(&g->frame_ids, hash, g->frames.n - 1) < 0)
		return -ENOMEM;
	return (int64_t)g->frames.n - 1;
}

/* 1 + index of the node of a frame under another node; negative when out of memory. */
static int64_t node_of(struct graph *g, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame, at;

	if (map_get(&g->node_ids, key, &at))
		return (int64_t)at;
	if (!VEC_ADD(&g->nodes, ((struct node){parent, frame, 0, 0})) ||
	    map_put(&g->node_ids, key, g->nodes.n) < 0)
		return -ENOMEM;
	return (int64_t)g->nodes.n;
}

/* Adds a frame of the location whose module is g->module to the array. */
static int add_frame(void *ctx, const struct profile_frame *f)
{
	struct graph *g = ctx;
	char *unknown;
	const char *name = profile_frame_name(g->p, f, &unknown);
	uint32_t kind = f->code | (f->is_inlined ? INLINED : 0);
	int64_t frame = name ? frame_of(g, name, g->module, kind) : -ENOMEM;

	free(unknown);
	return frame >= 0 && VEC_ADD(&g->location_frames, (uint32_t)frame) ? 0 : -ENOMEM;
}

/* Adds the frames of a location to the array; 0 or -ENOMEM. */
static int add_frames(struct graph *g, uint32_t id)
{
	int64_t module = module_of(g, cairn_profile_location(g->p, id));

	g->module = (uint32_t)module;
	return module < 0 ? -ENOMEM : profile_walk_location(g->p, id, add_frame, g);
}

/* The node of a location's innermost frame under another node; negative when out of memory. */
static int64_t add_location(struct graph *g, int64_t node, uint32_t id)
{
	struct location_frames *f = &g->locations[id];

	if (!f->n) {
		f->first = (uint32_t)g->location_frames.n;
		if (add_frames(g, id) < 0)
			return -ENOMEM;
		f->n = (uint32_t)g->location_frames.n - f->first;
	}
	for (uint32_t i = 0; node >= 0 && i < f->n; i++)
		node = node_of(g, (uint32_t)node, g->location_frames.p[f->first + i]);
	return node;
}

static int add_samples(struct graph *g, const struct cairn_profile *p, size_t type, bool is_before,
		       struct cairn_err *err)
{
	int rc = profile_check_type(p, type, err);

	g->p = p;
	free(g->locations);
	g->locations = calloc((size_t)cairn_profile_n_locations(p) + 1, sizeof(*g->locations));
	if (rc == 0 && !g->locations)
		rc = err_nomem(err, "the flame graph");
	for (size_t i = 0; rc == 0 && i < cairn_profile_n_samples(g->p); i++) {
		struct cairn_profile_sample s = cairn_profile_sample(g->p, i);
		int64_t node = 0;

		for (size_t k = s.n_stack; node >= 0 && k-- > 0;)
			node = add_location(g, node, s.stack[k]);
		if (node < 0)
			rc = err_nomem(err, "the flame graph");
		else if (node > 0)
			rc = profile_add_value(is_before ? &g->nodes.p[node - 1].before
							 : &g->nodes.p[node - 1].self,
					       s.values[type], err);
	}
	return rc;
}

/* ---- writing ---- */

/* As fprintf() writes them, of which there are millions. */
static void put_number(FILE *out, int64_t value)
{
	char digits[24], *at = digits + sizeof(digits);
	uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do
		*--at = (char)('0' + left % 10);
	while (left /= 10);
	if (value < 0)
		*--at = '-';
	fwrite_unlocked(at, 1, (size_t)(digits + sizeof(digits) - at), out);
}

/* Three numbers a node, and a fourth if two profiles are compared. */
static void put_nodes(FILE *out, const struct graph *g)
{
	for (size_t i = 0; i < g->nodes.n; i++) {
		const struct node *n = &g->nodes.p[i];

		if (i)
			fputs_unlocked(i % 16 ? "," : ",\n", out);
		put_number(out, (int64_t)n->parent - 1);
		putc_unlocked(',', out);
		put_number(out, n->frame);
		putc_unlocked(',', out);
		put_number(out, n->self);
		if (g->is_diff) {
			putc_unlocked(',', out);
			put_number(out, n->before);
		}
	}
}

static void put_profile(FILE *out, const struct graph *g)
{
	fprintf(out, "{\"value\":\"%s\",\"unit\":\"%s\",\"stacks\":%zu,\"diff\":%s,\"modules\":[",
		g->value, g->unit, g->n_stacks, g->is_diff ? "true" : "false");
	for (size_t i = 0; i < g->modules.n; i++)
		fprintf(out, "%s\"%s\"", i ? "," : "", g->quoted_modules.p[i]);
	fputs("],\"frames\":[", out);
	for (size_t i = 0; i < g->frames.n; i++)
		fprintf(out, "%s[\"%s\",%" PRIu32 ",%" PRIu32 "]", i ? ",\n" : "",
			g->frames.p[i].quoted, g->frames.p[i].module, g->frames.p[i].kind);
	fputs("],\"nodes\":[", out);
	put_nodes(out, g);
	fputs("]}", out);
}

static int put_page(FILE *out, const struct graph *g, const char *title)
{
	for (size_t i = 0; i < sizeof(page) / sizeof(page[0]); i++)
		if (page[i].text)
			fputs(page[i].text, out);
		else if (page[i].mark == 'T')
			cairn_quote_put(title, CAIRN_QUOTE_HTML, out);
		else
			put_profile(out, g);
	return ferror(out) ? -ENOMEM : 0;
}

static int write_page(const struct graph *g, const char *title, struct cairn_profile_bytes *ret)
{
	FILE *out = open_memstream((char **)&ret->bytes, &ret->size);
	int rc;

	if (!out)
		return -ENOMEM;
	rc = put_page(out, g, title);
	return fclose(out) == 0 ? rc : -ENOMEM;
}

static int name_values(struct graph *g, const struct cairn_profile_type *t)
{
	g->value = quoted(g, t->type);
	g->unit = quoted(g, t->unit);
	return g->value && g->unit ? 0 : -ENOMEM;
}

static void graph_fini(struct graph *g)
{
	free(g->locations);
	VEC_FREE(&g->location_frames);
	VEC_FREE(&g->modules);
	VEC_FREE(&g->quoted_modules);
	VEC_FREE(&g->frames);
	VEC_FREE(&g->nodes);
	map_fini(&g->module_ids);
	map_fini(&g->frame_ids);
	map_fini(&g->node_ids);
	arena_fini(&g->arena);
}

/* One profile, or two if @before is not NULL. */
static int make_page(const struct cairn_profile *before, size_t type_before,
		     const struct cairn_profile *p, size_t type, const char *title,
		     struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	struct graph g = {.is_diff = before, .n_stacks = cairn_profile_n_samples(p)};
	int rc;

	*ret = (struct cairn_profile_bytes){0};
	rc = add_samples(&g, p, type, false, err);
	if (rc == 0)
		rc = name_values(&g, cairn_profile_type(p, type));
	if (rc == 0 && before)
		rc = add_samples(&g, before, type_before, true, err);
	if (rc == 0)
		rc = write_page(&g, title, ret);
	if (rc < 0) {
		free(ret->bytes);
		*ret = (struct cairn_profile_bytes){0};
	}
	graph_fini(&g);
	return rc == -ENOMEM ? err_nomem(err, "the page") : rc;
}

int cairn_profile_html(const struct cairn_profile *p, size_t type, const char *title,
		       struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	return make_page(NULL, 0, p, type, title, ret, err);
}

int cairn_profile_html_diff(const struct cairn_profile *before, size_t type_before,
			    const struct cairn_profile *after, size_t type_after, const char *title,
			    struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	return make_page(before, type_before, after, type_after, title, ret, err);
}
