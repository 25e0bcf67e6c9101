/* SPDX-License-Identifier: BSD-2-Clause */
#include "dwarf/types_ids.h"

#include <errno.h>
#include <inttypes.h>

#include "base/err.h"

int dw_types_new(const struct dwarf *dw, struct cairn_types *graph, struct dw_types **ret,
		 struct cairn_err *err)
{
	struct dw_types *r = calloc(1, sizeof(*r));
	if (!r)
		return err_nomem(err, "the reader of types");
	r->dw = dw;
	r->graph = graph;
	*ret = r;
	return 0;
}

void dw_types_free(struct dw_types *r)
{
	if (!r)
		return;
	map_fini(&r->ids);
	map_fini(&r->unread);
	map_fini(&r->fates);
	dw_type_index_free(r->index);
	VEC_FREE(&r->todo);
	VEC_FREE(&r->arrays);
	VEC_FREE(&r->extents);
	free(r);
}

struct cairn_types *dw_types_graph(const struct dw_types *r)
{
	return r->graph;
}

void dw_types_set_pointer_size(struct dw_types *r, uint8_t bytes)
{
	r->pointer_size = bytes;
}

uint32_t dw_types_id(struct dw_types *r, dw_off off)
{
	uint64_t known;
	if (map_get(&r->ids, off, &known))
		return (uint32_t)known;
	__typeof__(r->todo.p) item = VEC_PUSH(&r->todo);
	if (!item)
		return 0;
	item->off = off;
	item->id = types_reserve(r->graph);
	if (item->id && map_put(&r->ids, off, item->id) == 0)
		return item->id;
	r->todo.n--;
	return 0;
}

int dw_types_id_of(struct dw_types *r, const struct dw_die *die, const struct dw_value *v,
		   uint32_t *ret, struct cairn_err *err)
{
	dw_off off = v->ref;
	if (v->cls == DW_CLASS_SIGNATURE)
		off = dwarf_type_of_signature(r->dw, v->u);
	else if (v->cls != DW_CLASS_REF)
		return err_set(err, -EBADMSG,
			       "%s: the type of the DIE at 0x%" PRIx64
			       " is no reference (form 0x%x)",
			       cairn_binary_path(dwarf_binary(r->dw)), die->off, v->form);
	*ret = off ? dw_types_id(r, off) : types_reserve(r->graph);
	if (!*ret)
		return err_nomem(err, "types");
	if (!off)
		types_set(r->graph, *ret,
			  &(struct cairn_type){.kind = CAIRN_T_UNSPECIFIED,
					       .name = "<missing type unit>"});
	return 0;
}

int dw_types_ref(struct dw_types *r, const struct dw_die *die, uint32_t *ret, struct cairn_err *err)
{
	struct dw_value v;
	int rc = dw_attr(die, DW_AT_type, &v, err);
	*ret = 0;
	return rc > 0 ? dw_types_id_of(r, die, &v, ret, err) : rc;
}

uint32_t dw_types_opaque(struct dw_types *r, const char *name, uint64_t size)
{
	uint32_t id = types_reserve(r->graph);
	types_set(r->graph, id,
		  &(struct cairn_type){.kind = CAIRN_T_INT,
				       .encoding = CAIRN_ENC_OPAQUE,
				       .name = name,
				       .size = size});
	return id;
}

int dw_types_read_opaque(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			 struct cairn_err *err)
{
	t->kind = CAIRN_T_INT;
	t->encoding = CAIRN_ENC_OPAQUE;
	t->name = dw_str(die, DW_AT_name);
	t->size = dw_udata(die, DW_AT_byte_size, 0);
	return 0;
}
