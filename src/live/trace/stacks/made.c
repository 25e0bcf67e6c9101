/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of code made at run time, which only its process has, and only while the code is there
 *
 * One process is open at a time, and is read again when it does not know an address, but not all
 * the time: an address without a name is asked for at growing distances.
 */
#include <errno.h>
#include <string.h>

#include <cairn/code.h>

#include "code/target.h"
#include "trace/stacks/impl.h"

#define WAIT_MIN_NS UINT64_C(10000000)
#define WAIT_MAX_NS UINT64_C(1000000000)
/* A process is not read more often. */
#define AGE_MIN_NS  UINT64_C(1000000)

static uint64_t hash_of(int pid, uint64_t at)
{
	uint64_t pair[2] = {(uint64_t)pid, at};

	return map_hash_bytes(pair, sizeof(pair));
}

/* The index of a place, or -1 and the key for it. */
static int64_t find(const struct trace_stacks *s, int pid, uint64_t at, uint64_t *ret_key)
{
	uint64_t key = hash_of(pid, at), i;

	for (; map_get(&s->made_ids, key, &i); key++)
		if (s->made.p[i]->pid == pid && s->made.p[i]->at == at)
			return (int64_t)i;
	*ret_key = key;
	return -1;
}

static bool is_made(uint64_t frame)
{
	return !(frame & WALK_KERNEL) && frame & WALK_RAW;
}

const struct stack_made *stacks_made(const struct trace_stacks *s, int pid, uint64_t frame)
{
	uint64_t key;
	int64_t i = is_made(frame) ? find(s, pid, walk_unfiled(frame), &key) : -1;

	return i < 0 ? NULL : s->made.p[i];
}

static struct stack_made *add(struct trace_stacks *s, int pid, uint64_t at)
{
	uint64_t key = 0;
	int64_t i = find(s, pid, at, &key);
	struct stack_made *made;

	if (i >= 0)
		return s->made.p[i];
	made = arena_alloc(&s->arena, sizeof(*made));
	if (!made || !VEC_ADD(&s->made, made) || map_put(&s->made_ids, key, s->made.n - 1) < 0)
		return NULL;
	made->pid = pid;
	made->at = at;
	return made;
}

static void close_code(struct trace_stacks *s)
{
	cairn_code_close(s->code);
	s->code = NULL;
	s->code_pid = 0;
}

/* The process as it is now. False: it cannot be read. */
static bool read_process(struct trace_stacks *s, int pid, uint64_t now, uint64_t max_age_ns)
{
	if (s->code && s->code_pid == pid && now - s->code_ns < max_age_ns)
		return true;
	if (s->code && (s->code_pid != pid || cairn_code_refresh(s->code, NULL) < 0))
		close_code(s);
	/* Its main thread may have ended. */
	if (!s->code && cairn_code_open_pid(target_living_thread(pid), NULL, &s->code, NULL) < 0) {
		s->code = NULL;
		return false;
	}
	s->code_pid = pid;
	s->code_ns = now;
	return true;
}

/* Code of a JIT that is there no more has no name: what is there now is other code. */
static bool is_of_its_time(uint64_t at, const struct cairn_code_range *range)
{
	uint64_t epoch = at >> WALK_EPOCH_SHIFT & WALK_EPOCH_MASK;

	return !(at & WALK_MADE) || (range->generation & WALK_EPOCH_MASK) == epoch;
}

static bool copy_text(struct arena *arena, const char **text)
{
	if (!*text)
		return true;
	*text = arena_strdup(arena, *text);
	return *text;
}

static bool keep_range(struct trace_stacks *s, struct stack_made *made,
		       const struct cairn_code_range *range)
{
	made->range = *range;
	made->has_range = true;
	return copy_text(&s->arena, &made->range.owner) && copy_text(&s->arena, &made->range.why);
}

static bool keep_functions(struct trace_stacks *s, struct stack_made *made,
			   const struct cairn_frame *frames, size_t n)
{
	struct cairn_frame *own = arena_array(&s->arena, n, sizeof(*own));

	for (size_t i = 0; own && i < n; i++) {
		own[i] = frames[i];
		if (!copy_text(&s->arena, &own[i].function) ||
		    !copy_text(&s->arena, &own[i].name) || !copy_text(&s->arena, &own[i].file))
			return false;
	}
	made->functions = own;
	made->n_functions = own ? n : 0;
	return own;
}

/* Whether the process, as it was read last, has the code. */
static bool has_code(const struct trace_stacks *s, const struct stack_made *made)
{
	struct cairn_addr at = {walk_unfiled_address(made->at)};
	const struct cairn_code_range *range = cairn_code_find(s->code, at, 0);

	return range && is_of_its_time(made->at, range);
}

static int look_up(struct trace_stacks *s, struct stack_made *made)
{
	struct cairn_frame frames[CAIRN_FRAMES_MAX];
	struct cairn_addr at = {walk_unfiled_address(made->at)};
	const struct cairn_code_range *range = cairn_code_find(s->code, at, 0);
	int n;

	if (!range || !is_of_its_time(made->at, range))
		return 0;
	if (!keep_range(s, made, range))
		return -ENOMEM;
	n = cairn_code_frames(s->code, at, frames, CAIRN_FRAMES_MAX, &made->off, NULL);
	if (n < 0) {
		close_code(s);
		return n == -ENOMEM ? n : 0;
	}
	made->has_off = n > 0;
	return n && !keep_functions(s, made, frames, (size_t)n) ? -ENOMEM : 0;
}

int stacks_name_made(struct trace_stacks *s, int pid, uint64_t frame)
{
	struct stack_made *made = is_made(frame) ? add(s, pid, walk_unfiled(frame)) : NULL;
	uint64_t now = trace_now_ns();

	if (!made)
		return is_made(frame) ? -ENOMEM : 0;
	if (made->n_functions || now < made->looked_ns + made->wait_ns)
		return 0;
	made->looked_ns = now;
	made->wait_ns = made->wait_ns ? made->wait_ns * 2 : WAIT_MIN_NS;
	made->wait_ns = made->wait_ns < WAIT_MAX_NS ? made->wait_ns : WAIT_MAX_NS;
	/* A JIT whose present code is not known yet may replace it soon. */
	if (read_process(s, pid, now, WAIT_MIN_NS) && !has_code(s, made))
		read_process(s, pid, now, AGE_MIN_NS);
	return s->code_pid == pid && s->code ? look_up(s, made) : 0;
}
