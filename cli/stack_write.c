/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks as text and as JSON
 *
 *	thread 4711 "worker", SIGSEGV at 0x10
 *	#0  0x00007f10a2c5d3f5  tcache_get at malloc.c:3171:3 (inlined)
 *	#1                      malloc+0x75 at malloc.c:3294:10  libc.so.6
 *	#2  0x000055d0c0a011d6  work+0x26 at server.c:12:9  server
 *	#3  0x00007f10a0001042  fib+0x12  [jit: app, generation 7]
 *	#4  0x00007f10a0002000  ?  [anonymous: no registry, GDB list, jitdump or perf map has a function there]
 *	    no unwind row at 0x1234 in server
 *
 * An inlined copy has a line of its own, as in debuggers; the address is that of the frame that it is in. A stack
 * that is complete ends without a word, any other says why it is not.
 */
#include <inttypes.h>
#include <string.h>

#include "demangle.h"
#include "json.h"
#include "plain.h"
#include "stack.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *name_of(const struct cairn_frame *f)
{
	const char *name = demangled_or(f->function, f->name);

	return name ? name : "?";
}

static void put_position(FILE *out, const struct cairn_frame *f)
{
	if (!f->file)
		return;
	fputs(" at ", out);
	put_plain(out, f->file);
	if (f->line)
		fprintf(out, ":%" PRIu32, f->line);
	if (f->line && f->column)
		fprintf(out, ":%" PRIu32, f->column);
}

/* Whose code it is that is in no file, which generation, and why it has no name. */
static void put_code(FILE *out, const struct cairn_stack_frame *frame, const char *unnamed)
{
	const struct cairn_code_range *code = frame->code;
	bool is_named_otherwise = frame->n_functions && code->source == CAIRN_CODE_ANONYMOUS;

	fprintf(out, "  [%s", cairn_code_source_text(is_named_otherwise ? frame->named_by : code->source));
	fputs(code->owner ? ": " : "", out);
	put_plain(out, code->owner);
	if (code->generation)
		fprintf(out, ", generation %" PRIu64, code->generation);
	if (unnamed)
		fprintf(out, ": %s", unnamed);
	fputc(']', out);
}

/* The lines of a frame without their numbers. */
static void put_functions(FILE *out, const struct stack_names *names, const struct cairn_stack_frame *frame,
			  const struct stack_place *place)
{
	fprintf(out, "0x%016" PRIx64, frame->pc.v);
	for (size_t i = 0; i < place->n; i++) {
		const struct cairn_frame *f = &place->functions[i];
		bool is_outermost = i + 1 == place->n;

		fputs(i ? "                    " : "  ", out);
		put_plain(out, name_of(f));
		if (is_outermost && place->has_start)
			fprintf(out, "+0x%" PRIx64, place->off);
		stack_args_text(out, names, place, i);
		put_position(out, f);
		fputs(is_outermost ? "" : " (inlined)\n", out);
	}
	if (frame->is_signal)
		fputs("  <signal handler called>", out);
	else if (!place->n)
		fputs("  ?", out);
	fputs(frame->path ? "  " : "", out);
	if (frame->path)
		put_plain(out, base_name(frame->path));
	else if (frame->code)
		put_code(out, frame, place->unnamed);
	if (frame->assumed)
		fprintf(out, "  (assumed: %s)", frame->assumed);
	fputc('\n', out);
}

/* "#12 ", as printf("#%-3zu") has it; that would take longer than all the rest. */
static void put_number(FILE *out, size_t number)
{
	char text[32], *at = text + sizeof(text);

	for (size_t width = number < 10 ? 1 : number < 100 ? 2 : 3; width < 3; width++)
		*--at = ' ';
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	*--at = '#';
	fwrite_unlocked(at, 1, (size_t)(text + sizeof(text) - at), out);
}

/* Each line with its number in front. */
static void put_lines(FILE *out, const char *lines, size_t n, size_t *number)
{
	for (const char *end = lines + n, *behind; lines < end; lines = behind) {
		behind = (const char *)memchr(lines, '\n', (size_t)(end - lines)) + 1;
		put_number(out, (*number)++);
		fwrite_unlocked(lines, 1, (size_t)(behind - lines), out);
	}
}

/* The same at every thread: what is in a file, and says nothing of values. */
static bool is_of_its_address(const struct cairn_stack_frame *frame, const struct stack_names *names)
{
	return frame->bin && !frame->code && !frame->assumed && !names->with_args;
}

static void put_frame(FILE *out, const struct cairn_thread_stack *thread, size_t i, struct stack_names *names, size_t *number)
{
	const struct cairn_stack_frame *frame = thread->frames[i];
	const struct stack_memo_key key = {frame->bin, frame->vaddr.v, frame->pc.v};
	bool may_keep = is_of_its_address(frame, names);
	size_t n = 0;
	const char *known = may_keep ? stack_memo_find(&names->memo, &key, &n) : NULL;
	struct stack_place place;

	if (known) {
		put_lines(out, known, n, number);
		return;
	}
	stack_names_find(names, frame, &place);
	stack_args_find(names, thread, i, &place);
	rewind(names->lines);
	put_functions(names->lines, names, frame, &place);
	fflush(names->lines);
	put_lines(out, names->lines_text, names->lines_size, number);
	if (may_keep)
		stack_memo_put(&names->memo, &key, names->lines_text, names->lines_size);
}

static void put_thread(FILE *out, const struct cairn_thread_stack *thread)
{
	const char *signal = sigabbrev_np(thread->signal);

	fprintf(out, "thread %d", thread->tid);
	if (thread->comm[0]) {
		fputs(" \"", out);
		put_plain(out, thread->comm);
		fputc('"', out);
	}
	if (signal && thread->signal)
		fprintf(out, ", SIG%s", signal);
	else if (thread->signal)
		fprintf(out, ", signal %d", thread->signal);
	if (thread->has_fault)
		fprintf(out, " at 0x%" PRIx64, thread->fault.v);
	fputc('\n', out);
}

void stack_text(FILE *out, const struct cairn_thread_stack *thread, struct stack_names *names)
{
	size_t number = 0;

	put_thread(out, thread);
	for (size_t i = 0; i < thread->n_frames; i++)
		put_frame(out, thread, i, names, &number);
	if (thread->end != CAIRN_WALK_OUTERMOST) {
		fputs("    ", out);
		put_plain(out, thread->why);
		fputc('\n', out);
	}
}

static void json_functions(struct json *j, const struct stack_names *names, const struct stack_place *place)
{
	json_open(j, "functions", '[');
	for (size_t i = 0; i < place->n; i++) {
		const struct cairn_frame *f = &place->functions[i];

		json_open(j, NULL, '{');
		json_text(j, "function", f->function);
		json_text(j, "name", f->name);
		json_text(j, "file", f->file);
		json_uint(j, "line", f->line);
		json_uint(j, "column", f->column);
		if (names->with_args)
			stack_args_json(j, names, place, i);
		json_close(j);
	}
	json_close(j);
}

static void json_code(struct json *j, const struct cairn_stack_frame *frame)
{
	json_open(j, "code", '{');
	json_text(j, "source", cairn_code_source_text(frame->code->source));
	json_text(j, "owner", frame->code->owner);
	json_hex(j, "lo", frame->code->lo.v);
	json_hex(j, "hi", frame->code->hi.v);
	json_uint(j, "generation", frame->code->generation);
	json_text(j, "unwind", cairn_code_unwind_text(frame->unwind));
	json_text(j, "named_by", frame->n_functions ? cairn_code_source_text(frame->named_by) : NULL);
	json_close(j);
}

static void json_frame(struct json *j, const struct cairn_thread_stack *thread, size_t number, struct stack_names *names)
{
	const struct cairn_stack_frame *frame = thread->frames[number];
	struct stack_place place;

	stack_names_find(names, frame, &place);
	stack_args_find(names, thread, number, &place);
	json_open(j, NULL, '{');
	json_hex(j, "pc", frame->pc.v);
	json_bool(j, "signal", frame->is_signal);
	json_bool(j, "assumed", frame->is_assumed);
	json_text(j, "why_assumed", frame->assumed);
	json_text(j, "path", frame->path);
	if (frame->bin)
		json_hex(j, "vaddr", frame->vaddr.v);
	if (place.has_start)
		json_uint(j, "offset", place.off);
	if (frame->code)
		json_code(j, frame);
	json_functions(j, names, &place);
	json_text(j, "unnamed", place.unnamed);
	json_close(j);
}

void stack_json(FILE *out, const struct cairn_thread_stack *thread, struct stack_names *names, unsigned long round)
{
	static const char *const ends[] = {
		[CAIRN_WALK_OUTERMOST] = "outermost",	[CAIRN_WALK_UNDESCRIBED] = "undescribed",
		[CAIRN_WALK_NO_FILE] = "no-file",	[CAIRN_WALK_UNREADABLE] = "unreadable",
		[CAIRN_WALK_LOST] = "lost-register",	[CAIRN_WALK_LOOP] = "loop",
		[CAIRN_WALK_LIMIT] = "limit",		[CAIRN_WALK_GONE] = "gone",
		[CAIRN_WALK_NO_CALL] = "no-call",	[CAIRN_WALK_NO_ROOM] = "no-room",
		[CAIRN_WALK_NOT_STOPPED] = "not-stopped",
	};
	struct json j = {.out = out};

	json_open(&j, NULL, '{');
	json_uint(&j, "round", round);
	json_int(&j, "tid", thread->tid);
	json_text(&j, "comm", thread->comm);
	json_uint(&j, "stopped_ns", thread->stopped_ns);
	if (thread->signal)
		json_int(&j, "signal", thread->signal);
	if (thread->has_fault)
		json_hex(&j, "fault", thread->fault.v);
	json_open(&j, "frames", '[');
	for (size_t i = 0; i < thread->n_frames; i++)
		json_frame(&j, thread, i, names);
	json_close(&j);
	json_text(&j, "end", ends[thread->end]);
	json_text(&j, "why", thread->why);
	json_close(&j);
}
