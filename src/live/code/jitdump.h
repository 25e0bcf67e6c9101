/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jitdump files: jit-PID.dump, which a JIT maps so that it is seen
 *
 *	header  40 bytes     u32 magic 0x4a695444, version 1, size, ELF machine, padding, pid; u64
 *	                     time, flags
 *	record  16 bytes     u32 id, u32 size with these 16; u64 time
 *	0 load               u32 pid, tid; u64 address, code address, code size, number; name; code
 *	1 move               u32 pid, tid; u64 address, old code address, new one, size, number
 *	2 debug information  u64 code address, n; n times u64 address, u32 line, u32 discriminator,
 *	                     file name
 *	3 close
 *	4 unwinding          u64 size, size of .eh_frame_hdr at its end, mapped size; .eh_frame,
 *	                     .eh_frame_hdr
 *
 * Records 2 and 4 are about the load that follows. The distances in .eh_frame count as if it were
 * after the code, at the next multiple of 8. A mapped size of 0 means that the code keeps a frame
 * pointer: there is only a .eh_frame_hdr without entries.
 *
 * V8 adds 64 to all addresses of record 2, the position of the code in the files that perf makes.
 * So if even the lowest is that far after the begin, 64 is subtracted. A file name of \xff is that
 * of the previous entry. V8 also writes names from memory that it has freed
 * (docs/findings/v8-jitdump-names.md): a text with control characters is no name.
 */
#ifndef CODE_JITDUMP_H
#define CODE_JITDUMP_H

#include "base/map.h"
#include "cfi/eh_block.h"
#include "code/name_map.h"
#include "code/process_file.h"

struct jitdump_lines {
	uint64_t off, size, n; /* the entries, in the file */
};

struct jitdump_function {
	uint64_t lo, hi;
	/* the code address that debug information and .eh_frame are for: that of its load */
	uint64_t written;
	const char *name;
	uint64_t number;
	uint64_t eh_off, eh_size; /* in the file; 0: none */
	bool keeps_frame_pointer;
	struct jitdump_lines lines;
};

struct jitdump {
	char *path; /* as the process has it */
	struct stat st;
	uint8_t *bytes;
	size_t n;
	uint16_t machine;
	VEC(struct jitdump_function) functions; /* a move makes a new one */
	struct name_map names;
	struct map by_number; /* a function's number to its last place */
	const char *why;      /* why it ends early; static words; NULL */
};

/* @bytes: the dump's, also after an error. Returns 0; -EBADMSG if it is no jitdump; -ENOMEM. */
int jitdump_parse(uint8_t *bytes, size_t n, struct jitdump *ret, struct cairn_err *err);

/*
 * Reads the file that process @pid has mapped as @path, if it changed. Errors as
 * process_file_read(), -EBADMSG.
 */
int jitdump_refresh(struct jitdump *d, int pid, const char *path, struct cairn_err *err);
void jitdump_fini(struct jitdump *d);

/* Whether a mapped file is named as JITs name their jitdump. */
bool jitdump_is_name(const char *path);

/* NULL: none. */
const struct jitdump_function *jitdump_find(const struct jitdump *d, uint64_t at);

/* The line at @at of @f; 0 when there is none. @ret_file is borrowed. */
uint32_t jitdump_line(const struct jitdump *d, const struct jitdump_function *f, uint64_t at,
		      const char **ret_file);

/*
 * jitdump_rows - the unwinding record of @f
 *
 * @ret  eh_block_close(); NULL: there is none. Its addresses are for the code at f->written.
 * Returns 0, -ENOMEM.
 */
int jitdump_rows(const struct jitdump *d, const struct jitdump_function *f, struct eh_block **ret);

/* The rule at @at by the unwinding record; undescribed without one. 0, -ENOMEM. */
int jitdump_rule(const struct jitdump *d, const struct jitdump_function *f, uint64_t at,
		 struct rule_words *ret);

#endif
