/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of frames: from the sidecar of the frame's file, its symbol table, or the description of
 * code made at run time.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "stack.h"

struct stack_file {
	const struct cairn_binary *bin;
	struct cairn_sidecar *sidecar; /* NULL: symbols only */
};

int stack_names_find_sidecar(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			     struct cairn_err *err)
{
	struct stack_names *names = ctx;
	int r = sidecar_find(&names->wish, bin, ret, err);
	const struct cairn_sidecar **grown;

	if (r || !*ret)
		return r;
	grown = realloc(names->found, (names->n_found + 1) * sizeof(*grown));
	if (!grown)
		return 0;
	names->found = grown;
	grown[names->n_found++] = *ret;
	return 0;
}

/* Those that had to hold something back were not used from then on. */
void stack_names_tell_trouble(const struct stack_names *names)
{
	for (size_t i = 0; i < names->n_found; i++)
		sidecar_trouble(names->found[i]);
}

/* The process runs again by now: a download delays no thread. */
static struct cairn_sidecar *asked_for(const struct stack_names *names,
				       const struct cairn_binary *bin)
{
	struct sidecar_wish wish = names->wish;
	struct cairn_sidecar *sidecar = NULL;
	struct cairn_err err = {0};

	wish.debuginfod = names->debuginfod;
	if (sidecar_find(&wish, bin, &sidecar, &err) < 0)
		fail_told(STATUS_YES, &err);
	return sidecar;
}

/* The sidecar of a file that had none when its first frame was walked through. */
static const struct cairn_sidecar *
made_sidecar_of(struct stack_names *names, const struct cairn_binary *bin, struct cairn_vaddr at)
{
	struct stack_file *grown;
	struct cairn_sidecar *sidecar = NULL;

	for (size_t i = 0; i < names->n; i++)
		if (names->files[i].bin == bin)
			return names->files[i].sidecar;
	if (cairn_binary_has_dwarf(bin))
		sidecar_make(bin, &names->wish, &sidecar);
	else if (names->debuginfod)
		sidecar = asked_for(names, bin);
	/* The one that is there may be the one that the walk has just refused. */
	if (sidecar && !cairn_sidecar_covers(sidecar, at)) {
		struct cairn_sidecar *another = sidecar_another(bin, &names->wish, sidecar);

		cairn_sidecar_close(sidecar);
		sidecar = another;
	}
	grown = realloc(names->files, (names->n + 1) * sizeof(*grown));
	if (grown) {
		names->files = grown;
		grown[names->n++] = (struct stack_file){bin, sidecar};
	}
	return sidecar;
}

static const struct cairn_sidecar *sidecar_of(struct stack_names *names,
					      const struct cairn_stack_frame *frame)
{
	if (frame->sidecar || !frame->bin || names->symbols_only)
		return frame->sidecar;
	return made_sidecar_of(names, frame->bin, frame->vaddr);
}

static bool symbol_of(const struct cairn_sidecar *sidecar, const struct cairn_stack_frame *frame,
		      const char **ret_name, struct cairn_vaddr *ret_start)
{
	if (sidecar)
		return cairn_sidecar_symbol_of(sidecar, frame->vaddr, ret_name, ret_start);
	return frame->bin && cairn_binary_symbol_of(frame->bin, frame->vaddr, ret_name, ret_start);
}

/* Takes the description of the code from the time when it was there. */
static void take_names_of_frame(const struct cairn_stack_frame *frame, struct stack_place *ret)
{
	ret->n = frame->n_functions < CAIRN_FRAMES_MAX ? frame->n_functions : CAIRN_FRAMES_MAX;
	for (size_t i = 0; i < ret->n; i++)
		ret->functions[i] = frame->functions[i];
	ret->has_start = frame->has_off;
	ret->off = frame->off + !frame->is_exact;
	if (!ret->n && !frame->is_signal)
		ret->unnamed = frame->unnamed || !frame->path ? frame->unnamed
							      : "the file has no symbol there";
}

void stack_names_find(struct stack_names *names, const struct cairn_stack_frame *frame,
		      struct stack_place *ret)
{
	const struct cairn_sidecar *sidecar = sidecar_of(names, frame);
	struct cairn_vaddr start;
	const char *symbol;

	ret->n = 0;
	ret->has_start = ret->has_active = false;
	ret->unnamed = NULL;
	if (sidecar && !names->symbols_only)
		ret->n = cairn_sidecar_frames(sidecar, frame->vaddr, ret->functions,
					      CAIRN_FRAMES_MAX);
	/* If its sidecar is damaged, the symbols of the file name the frame. */
	if (sidecar && cairn_sidecar_trouble(sidecar, NULL) < 0) {
		sidecar = NULL;
		ret->n = 0;
	}
	if (frame == names->at_site)
		ret->n = cairn_site_frames(names->function, names->site, ret->functions, ret->n);
	if (symbol_of(sidecar, frame, &symbol, &start)) {
		ret->has_start = true;
		ret->off = frame->vaddr.v - start.v + !frame->is_exact;
		if (!ret->n)
			ret->functions[ret->n++] =
				(struct cairn_frame){.function = symbol, .name = symbol};
	}
	if (!ret->n)
		take_names_of_frame(frame, ret);
}

bool stack_names_init(struct stack_names *names)
{
	names->lines = open_memstream(&names->lines_text, &names->lines_size);
	return names->lines;
}

void stack_names_fini(struct stack_names *names)
{
	if (names->lines)
		fclose(names->lines);
	free(names->lines_text);
	stack_memo_fini(&names->memo);
	for (size_t i = 0; i < names->n; i++)
		cairn_sidecar_close(names->files[i].sidecar);
	free(names->files);
	free(names->found);
	stack_args_fini(names);
}
