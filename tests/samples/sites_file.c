/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites_file.h"

#include <stdlib.h>
#include <string.h>

#include <cairn/btf.h>

#include "btf/build.h"
#include "elf_builder.h"

/* clang-format off */
static const uint8_t code[] = {
	0x89, 0xf8, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90,
	0x53, 0x89, 0xfb, 0x83, 0xc3, 0x01, 0x89, 0xd8, 0x5b, 0xc3,
};
/* clang-format on */

struct blobs {
	void *types, *sites;
	size_t n_types, n_sites;
};

/* The ids that the second blob needs of the first. */
struct ids {
	uint32_t num, ptr, pair, body, caller;
};

static void must(int rc)
{
	if (rc < 0)
		abort();
}

static uint32_t string(struct cairn_btf_builder *b, const char *s)
{
	uint32_t off;
	must(cairn_btf_add_string(b, s, &off));
	return off;
}

static uint32_t add_func(struct cairn_btf_builder *b, const char *name, uint32_t result,
			 const struct cairn_btf_param *params, uint32_t n)
{
	uint32_t proto, id;
	must(btf_add_func_proto(b, result, params, n, &proto));
	must(btf_add_func(b, string(b, name), CAIRN_BTF_STATIC, proto, &id));
	return id;
}

static struct ids add_types(struct cairn_btf_builder *b)
{
	struct ids ids;
	must(btf_add_int(b, string(b, "int"), 4, CAIRN_BTF_INT_SIGNED, 32, &ids.num));
	must(btf_add_ref(b, CAIRN_BTF_PTR, 0, ids.num, &ids.ptr));
	struct cairn_btf_member members[] = {{string(b, "first"), ids.ptr, 0, 0},
					     {string(b, "second"), ids.ptr, 64, 0}};
	must(btf_add_struct(b, CAIRN_BTF_STRUCT, string(b, "pair"), 16, members, 2, &ids.pair));
	struct cairn_btf_param params[] = {{string(b, "a"), ids.num}, {string(b, "b"), ids.num}};
	ids.body = add_func(b, "body", ids.num, params, 2);
	ids.caller = add_func(b, "caller", ids.num, params, 1);
	return ids;
}

/* clang-format off */
static const struct cairn_btf_loc_param forms[SITES_FILE_PARAMS] = {
	{.flags = CAIRN_BTF_LOC_REG, .size = 4, .n_regs = 1, .reg = {3}},
	{.flags = CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_OFFSET, .size = 8, .n_regs = 1, .reg = {5}, .offset = -8},
	{.flags = CAIRN_BTF_LOC_REG, .size = 16, .n_regs = 2, .reg = {5, 4}},
	{.flags = CAIRN_BTF_LOC_CONST | CAIRN_BTF_LOC_SIGNED, .size = 4, .value = -7},
	{.flags = CAIRN_BTF_LOC_CONST | CAIRN_BTF_LOC_ADDR, .size = 8, .value = 8},
	{.flags = CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_DEREF | CAIRN_BTF_LOC_OFFSET, .size = 4, .n_regs = 1, .reg = {7}, .offset = 16},
	{.flags = CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_DEREF, .size = 4, .n_regs = 1, .reg = {CAIRN_BTF_LOC_FBREG}},
	{.flags = CAIRN_BTF_LOC_REG, .size = 4, .n_regs = 1, .reg = {17}},
	{.flags = CAIRN_BTF_LOC_REG, .size = 4, .n_regs = 1, .reg = {5}},
};
/* clang-format on */

static uint32_t add_inlined(struct cairn_btf_builder *b, const struct ids *ids)
{
	uint32_t types[SITES_FILE_PARAMS] = {ids->num, ids->ptr, ids->pair, ids->num, ids->ptr,
					     ids->num, ids->num, ids->num,  ids->ptr};
	struct cairn_btf_param params[SITES_FILE_PARAMS];
	for (uint32_t i = 0; i < SITES_FILE_PARAMS; i++) {
		char name[] = {(char)('p' + i), 0};
		params[i] = (struct cairn_btf_param){string(b, name), types[i]};
	}
	return add_func(b, "inl", ids->num, params, SITES_FILE_PARAMS);
}

static void add_sites(struct cairn_btf_builder *b, const struct ids *ids,
		      const struct sites_file_opts *o)
{
	uint32_t slots[SITES_FILE_PARAMS + 1] = {0}, inl = add_inlined(b, ids), proto, of_body, id;
	for (uint32_t i = 0; i < SITES_FILE_PARAMS; i++)
		if (btf_add_loc_param(b, &forms[i], &slots[i]) < 0)
			slots[i] = 0;
	must(btf_add_loc_proto(b, slots, SITES_FILE_PARAMS + o->many_slots, &proto));
	must(btf_add_loc_proto(b, slots, 1, &of_body));
	struct cairn_btf_loc locs[] = {
		{.func = ids->body, .loc_proto = of_body, .offset = 9},
		{.func = o->wrong_func ? ids->num : inl, .loc_proto = proto, .offset = 11},
		{.func = inl, .loc_proto = o->wrong_proto ? ids->num : 0, .offset = 14},
	};
	for (size_t i = 0; i < 3; i++) {
		locs[i].offset += o->past_end;
		locs[i].name_off = string(b, "inl");
		locs[i].func_proto = ids->body - 1;
	}
	must(btf_add_locsec(b, string(b, o->label ? o->label : ".text"), locs, 3, &id));
}

static struct cairn_btf_builder *builder(const struct cairn_btf *base, bool v1)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts),
					    .base = base,
					    .dialect = v1 ? CAIRN_BTF_LOC_V1 : CAIRN_BTF_LOC_N,
					    .layout = base};
	struct cairn_btf_builder *b;
	must(cairn_btf_builder_new(&opts, &b, NULL));
	return b;
}

static struct blobs make(const struct sites_file_opts *o)
{
	struct blobs ret;
	struct cairn_btf *main;
	struct cairn_btf_builder *b = builder(NULL, false);
	struct ids ids = add_types(b);
	must(cairn_btf_finish(b, &ret.types, &ret.n_types, NULL));
	cairn_btf_builder_free(b);
	must(cairn_btf_open_mem(ret.types, ret.n_types, "types", NULL, &main, NULL));
	b = builder(main, o->v1);
	add_sites(b, &ids, o);
	must(cairn_btf_finish(b, &ret.sites, &ret.n_sites, NULL));
	cairn_btf_builder_free(b);
	cairn_btf_close(main);
	return ret;
}

/* Types of another program. */
static void replace_types(struct blobs *ret)
{
	uint32_t id;
	struct cairn_btf_builder *b = builder(NULL, false);
	free(ret->types);
	must(btf_add_int(b, string(b, "a_longer_name_than_any"), 8, 0, 64, &id));
	for (int i = 0; i < 12; i++)
		must(btf_add_ref(b, CAIRN_BTF_CONST, 0, id, &id));
	must(cairn_btf_finish(b, &ret->types, &ret->n_types, NULL));
	cairn_btf_builder_free(b);
}

size_t sites_file_inline_size(void)
{
	struct blobs b = make(&(struct sites_file_opts){0});
	free(b.types);
	free(b.sites);
	return b.n_sites;
}

size_t sites_file_types_size(void)
{
	struct blobs b = make(&(struct sites_file_opts){0});
	free(b.types);
	free(b.sites);
	return b.n_types;
}

static void add_symbols(struct elf_builder *b, uint32_t text)
{
	eb_symbol(b,
		  (struct eb_symbol){"caller", text, SITES_FILE_CALLER, 10, STT_FUNC, STB_LOCAL});
	eb_symbol(b, (struct eb_symbol){"body", text, SITES_FILE_BODY, 3, STT_FUNC, STB_GLOBAL});
}

static void add_blobs(struct elf_builder *b, const struct blobs *blobs,
		      const struct sites_file_opts *o)
{
	if (!o->without_types)
		eb_section(b, (struct eb_section){.name = ".BTF",
						  .align = 4,
						  .data = blobs->types,
						  .size = blobs->n_types - o->cut_types});
	if (!o->without_sites)
		eb_section(b,
			   (struct eb_section){.name = o->link ? ".BTF.inline.link" : ".BTF.inline",
					       .align = 4,
					       .data = blobs->sites,
					       .size = blobs->n_sites - o->cut});
	if (o->comment)
		eb_section(b, (struct eb_section){.name = ".comment",
						  .data = o->comment,
						  .size = strlen(o->comment) + 1});
}

uint8_t *sites_file(const struct sites_file_opts *o, size_t *ret_size)
{
	struct elf_builder *b = eb_new(ET_DYN);
	struct blobs blobs = make(o);
	if (o->other_base)
		replace_types(&blobs);
	uint32_t text = eb_section(b, (struct eb_section){.name = ".text",
							  .flags = SHF_ALLOC | SHF_EXECINSTR,
							  .addr = SITES_FILE_BODY,
							  EB_BYTES(code)});
	eb_load(b, text);
	add_blobs(b, &blobs, o);
	if (!o->without_symbols)
		add_symbols(b, text);
	uint8_t *bytes = eb_finish(b, ret_size), *ret = malloc(*ret_size);
	if (!ret)
		abort();
	memcpy(ret, bytes, *ret_size);
	eb_free(b);
	free(blobs.types);
	free(blobs.sites);
	return ret;
}
