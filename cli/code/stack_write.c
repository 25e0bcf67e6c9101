/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks as text and as JSON
 *
 *	thread 4711 "worker", SIGSEGV at 0x10
 *	#0  0x00007f10a2c5d3f5  tcache_get at malloc.c:3171:3 (inlined)
 *	#1                      malloc+0x75 at malloc.c:3294:10  libc.so.6
 *	#2  0x000055d0c0a011d6  work+0x26 at server.c:12:9  server
 *	#3  0x00007f10a0001042  fib+0x12  [jit: app, generation 7]
 *	#4  0x00007f10a0002000  ?  [anonymous: no registry, GDB list, jitdump or perf map has a
 *	                           function there]
 *	    no unwind row at 0x1234 in server
 *
 * An inlined copy has a line of its own, as in debuggers; the address is that of the frame that it
 * is in. A complete stack ends without a note. Any other stack names the reason why it is not
 * complete, or the assumption by which it is.
 */
#include <inttypes.h>
#include <string.h>

#include "demangled.h"
#include "json.h"
#include "say.h"
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
	say_name(out, f->file);
	if (f->line)
		fprintf(out, ":%" PRIu32, f->line);
	if (f->line && f->column)
		fprintf(out, ":%" PRIu32, f->column);
}

/* The owner of code in no file, the generation, and why it has no name. */
static void put_code(FILE *out, const struct cairn_stack_frame *frame, const char *unnamed)
{
	const struct cairn_code_range *code = frame->code;
	bool is_named_otherwise = frame->n_functions && code->source == CAIRN_CODE_ANONYMOUS;

	fprintf(out, "  [%s",
		cairn_code_source_text(is_named_otherwise ? frame->named_by : code->source));
	fputs(code->owner ? ": " : "", out);
	say_name(out, code->owner);
	if (code->generation)
		fprintf(out, ", generation %" PRIu64, code->generation);
	if (unnamed)
		say(out, ": %s", unnamed);
	fputc(']', out);
}

enum { NUMBER_ROOM = 4 };
static const char number_room[] = "    ";

/*
 * The address of a frame in a file may be unknown, at an event. Without a file 0 is an address,
 * too: that of a call through a null pointer.
 */
static bool has_pc(const struct cairn_stack_frame *frame)
{
	return frame->pc.v || !frame->path;
}

/* The lines of a frame, with room for their numbers. */
static void put_functions(FILE *out, const struct stack_names *names,
			  const struct cairn_stack_frame *frame, const struct stack_place *place)
{
	if (has_pc(frame))
		fprintf(out, "%s0x%016" PRIx64, number_room, frame->pc.v);
	else
		fprintf(out, "%s%-18s", number_room, "?");
	for (size_t i = 0; i < place->n; i++) {
		const struct cairn_frame *f = &place->functions[i];
		bool is_outermost = i + 1 == place->n;

		fputs(i ? "                    " : "  ", out);
		say_name(out, name_of(f));
		if (is_outermost && place->has_start)
			fprintf(out, "+0x%" PRIx64, place->off);
		stack_args_text(out, names, place, i);
		put_position(out, f);
		if (!is_outermost)
			fprintf(out, " (inlined)\n%s", number_room);
	}
	if (frame->is_signal)
		fputs("  <signal handler called>", out);
	else if (!place->n)
		fputs("  ?", out);
	fputs(frame->path ? "  " : "", out);
	if (frame->path)
		say_name(out, base_name(frame->path));
	else if (frame->code)
		put_code(out, frame, place->unnamed);
	if (frame->assumed)
		say(out, "  (assumed: %s)", frame->assumed);
	fputc('\n', out);
}

/*
 * "#12 " in the room for it, as printf("#%-3zu") has it; that would take longer than all the rest.
 */
static void number_line(char *line, size_t number)
{
	line[0] = '#';
	line[1] = (char)('0' + (number < 10 ? number : number / 10));
	line[2] = (char)(number < 10 ? ' ' : '0' + number % 10);
	line[3] = ' ';
}

/* Numbers that the room is too small for. */
static void put_with_large_number(FILE *out, const char *line, size_t n, size_t number)
{
	fprintf(out, "#%-2zu ", number);
	fwrite_unlocked(line + NUMBER_ROOM, 1, n - NUMBER_ROOM, out);
}

/* Each line with its number before it. */
static void put_lines(FILE *out, const struct stack_lines *lines, size_t *number)
{
	char *line = lines->text, *end = lines->text + lines->n;
	bool is_large = *number + lines->n_lines > 100;

	for (size_t left = lines->n_lines; left; left--) {
		char *after =
			left == 1 ? end : (char *)memchr(line, '\n', (size_t)(end - line)) + 1;

		if (is_large)
			put_with_large_number(out, line, (size_t)(after - line), *number);
		else
			number_line(line, *number);
		*number += 1;
		line = after;
	}
	if (!is_large)
		fwrite_unlocked(lines->text, 1, lines->n, out);
}

/*
 * True if the text is the same in every thread: the frame is in a file, and has no values. An
 * event's site has the probe's.
 */
static bool is_of_its_address(const struct cairn_stack_frame *frame,
			      const struct stack_names *names)
{
	return frame->bin && !frame->code && !frame->assumed && !names->with_args &&
	       frame != names->at_site;
}

/* The printed lines of a frame, until the next frame's. */
static struct stack_lines lines_of(const struct cairn_thread_stack *thread, size_t i,
				   struct stack_names *names)
{
	struct stack_place place;

	stack_names_find(names, thread->frames[i], &place);
	stack_args_find(names, thread, i, &place);
	rewind(names->lines);
	put_functions(names->lines, names, thread->frames[i], &place);
	fflush(names->lines);
	return (struct stack_lines){names->lines_text, names->lines_size,
				    place.n > 1 ? place.n : 1};
}

static struct stack_lines find_lines(const struct cairn_thread_stack *thread, size_t i,
				     struct stack_names *names)
{
	const struct cairn_stack_frame *frame = thread->frames[i];
	const struct stack_memo_key key = {frame->bin, frame->vaddr.v, frame->pc.v};
	bool may_keep = is_of_its_address(frame, names);
	struct stack_lines lines;

	if (may_keep && stack_memo_find(&names->memo, &key, &lines))
		return lines;
	lines = lines_of(thread, i, names);
	if (may_keep)
		stack_memo_put(&names->memo, &key, &lines);
	return lines;
}

static void put_thread(FILE *out, const struct cairn_thread_stack *thread)
{
	const char *signal = sigabbrev_np(thread->signal);

	fprintf(out, "thread %d", thread->tid);
	if (thread->comm[0]) {
		fputs(" \"", out);
		say_name(out, thread->comm);
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

void stack_frames_text(FILE *out, const struct cairn_thread_stack *thread,
		       struct stack_names *names)
{
	struct stack_lines lines = {0};
	size_t number = 0;

	for (size_t i = 0; i < thread->n_frames; i++) {
		/* In a recursion it is the same frame, but for its values. */
		if (!i || thread->frames[i] != thread->frames[i - 1] || names->with_args)
			lines = find_lines(thread, i, names);
		put_lines(out, &lines, &number);
	}
	if (thread->end != CAIRN_WALK_OUTERMOST) {
		fputs("    ", out);
		say_name(out, thread->why);
		fputc('\n', out);
	}
}

void stack_text(FILE *out, const struct cairn_thread_stack *thread, struct stack_names *names)
{
	put_thread(out, thread);
	stack_frames_text(out, thread, names);
}

static void json_functions(struct json *j, const struct stack_names *names,
			   const struct stack_place *place)
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
	json_text(j, "named_by",
		  frame->n_functions ? cairn_code_source_text(frame->named_by) : NULL);
	json_close(j);
}

static void json_frame(struct json *j, const struct cairn_thread_stack *thread, size_t number,
		       struct stack_names *names)
{
	const struct cairn_stack_frame *frame = thread->frames[number];
	struct stack_place place;

	stack_names_find(names, frame, &place);
	stack_args_find(names, thread, number, &place);
	json_open(j, NULL, '{');
	if (has_pc(frame))
		json_hex(j, "pc", frame->pc.v);
	else
		json_null(j, "pc");
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

const char *stack_end_id(enum cairn_walk_end end)
{
	/* clang-format off */
	static const char *const ends[] = {
		[CAIRN_WALK_OUTERMOST] = "outermost",	[CAIRN_WALK_UNDESCRIBED] = "undescribed",
		[CAIRN_WALK_NO_FILE] = "no-file",	[CAIRN_WALK_UNREADABLE] = "unreadable",
		[CAIRN_WALK_LOST] = "lost-register",	[CAIRN_WALK_LOOP] = "loop",
		[CAIRN_WALK_LIMIT] = "limit",		[CAIRN_WALK_GONE] = "gone",
		[CAIRN_WALK_NO_CALL] = "no-call",	[CAIRN_WALK_NO_ROOM] = "no-room",
		[CAIRN_WALK_NOT_STOPPED] = "not-stopped",	[CAIRN_WALK_ASSUMED] = "assumed",
		[CAIRN_WALK_NO_MAPPING] = "no-mapping",	[CAIRN_WALK_NOT_READY] = "not-ready",
		[CAIRN_WALK_READS] = "reads",		[CAIRN_WALK_NOT_TAKEN] = "not-taken",
	};
	/* clang-format on */

	return ends[end];
}

void stack_frames_json(struct json *j, const struct cairn_thread_stack *thread,
		       struct stack_names *names)
{
	json_open(j, "frames", '[');
	for (size_t i = 0; i < thread->n_frames; i++)
		json_frame(j, thread, i, names);
	json_close(j);
	json_text(j, "end", stack_end_id(thread->end));
	json_text(j, "why", thread->why);
}

void stack_json(FILE *out, const struct cairn_thread_stack *thread, struct stack_names *names,
		unsigned long round)
{
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
	stack_frames_json(&j, thread, names);
	json_close(&j);
}
