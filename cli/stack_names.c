/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of frames: from the sidecar of the frame's file, its symbol table, or what is said of code made at run time. */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "stack.h"

struct stack_file {
	const struct cairn_binary *bin;
	struct cairn_pack *pack; /* NULL: symbols only */
};

static struct cairn_pack *pack_of(struct stack_names *names, const struct cairn_binary *bin)
{
	struct stack_file *grown;
	struct cairn_pack *pack = NULL;

	for (size_t i = 0; i < names->n; i++)
		if (names->files[i].bin == bin)
			return names->files[i].pack;
	if (!names->symbols_only && (cairn_binary_has_dwarf(bin) || names->wish.file))
		sidecar_for(bin, &names->wish, &pack);
	grown = realloc(names->files, (names->n + 1) * sizeof(*grown));
	if (grown) {
		names->files = grown;
		grown[names->n++] = (struct stack_file){bin, pack};
	}
	return pack;
}

/* What was said of the code while it was there. */
static void take_names_of_frame(const struct cairn_stack_frame *frame, struct stack_place *ret)
{
	ret->n = frame->n_functions < CAIRN_FRAMES_MAX ? frame->n_functions : CAIRN_FRAMES_MAX;
	for (size_t i = 0; i < ret->n; i++)
		ret->functions[i] = frame->functions[i];
	ret->has_start = frame->has_off;
	ret->off = frame->off + !frame->is_exact;
	if (!ret->n && !frame->is_signal)
		ret->unnamed = frame->path ? "the file has no symbol there" : frame->unnamed;
}

void stack_names_find(struct stack_names *names, const struct cairn_stack_frame *frame, struct stack_place *ret)
{
	struct cairn_vaddr start;
	const char *symbol;
	struct cairn_pack *pack;

	ret->n = 0;
	ret->has_start = ret->has_active = false;
	ret->unnamed = NULL;
	pack = frame->bin ? pack_of(names, frame->bin) : NULL;
	if (pack)
		ret->n = cairn_pack_frames(pack, frame->vaddr, ret->functions, CAIRN_FRAMES_MAX);
	if (frame->bin && cairn_binary_symbol_of(frame->bin, frame->vaddr, &symbol, &start)) {
		ret->has_start = true;
		ret->off = frame->vaddr.v - start.v + !frame->is_exact;
		if (!ret->n)
			ret->functions[ret->n++] = (struct cairn_frame){.function = symbol, .name = symbol};
	}
	if (!ret->n)
		take_names_of_frame(frame, ret);
}

void stack_names_fini(struct stack_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		cairn_pack_close(names->files[i].pack);
	free(names->files);
	stack_args_fini(names);
}
