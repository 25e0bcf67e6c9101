/* SPDX-License-Identifier: BSD-2-Clause */
#include "cover/command.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"

static bool is_well_formed(const struct request *r)
{
	switch (r->head.kind) {
	case CAIRN_COVER_LOADED:
		return r->n % sizeof(struct bpf_insn) == 0;
	case CAIRN_COVER_FIND:
		return r->n && r->n < REQUEST_TEXT_MAX && !memchr(r->bytes, 0, r->n);
	case CAIRN_COVER_ATTACH:
		return r->n < REQUEST_TEXT_MAX && !memchr(r->bytes, 0, r->n);
	}
	return r->head.kind == CAIRN_COVER_DETACH;
}

static void read_head(struct cursor *c, struct cairn_cover_request *ret)
{
	ret->kind = cur_u32(c);
	ret->size = cur_u32(c);
	ret->program = cur_u32(c);
	ret->handle = cur_u32(c);
	ret->probe = cur_u32(c);
	ret->attached = cur_u32(c);
	ret->obstacle = cur_u32(c);
	ret->pid = (int32_t)cur_u32(c);
	ret->cookie = cur_u64(c);
	ret->at = cur_u64(c);
}

int request_take(const uint8_t *bytes, size_t n, struct request *ret, struct cairn_err *err)
{
	const struct cursor_src src = {.file = "the command", .section = "request", .base = bytes};
	struct cursor c = cursor_of(&src, bytes, n, false, err);

	if (n < sizeof(ret->head))
		return 0;
	read_head(&c, &ret->head);
	if (ret->head.size < sizeof(ret->head) || ret->head.size > CAIRN_COVER_REQUEST_MAX)
		return -EBADMSG;
	ret->bytes = c.pos;
	ret->n = ret->head.size - sizeof(ret->head);
	if (cur_left(&c) < ret->n)
		return 0;
	return is_well_formed(ret) ? (int)ret->head.size : -EBADMSG;
}
