/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of other libraries that the agent defines, and is therefore called for. */
#ifndef AGENT_HOOKS_H
#define AGENT_HOOKS_H

#define EXPORTED __attribute__((visibility("default")))

struct object;

/*
 * Called by the startup code of every object that is linked with crti.o, before its constructors;
 * defined by none but profilers.
 */
EXPORTED void __gmon_start__(void);
/*
 * Called by every object that is linked with crtbegin.o, with an address in it, before it is
 * unloaded; libc's, forwarded.
 */
EXPORTED void __cxa_finalize(void *object);

EXPORTED void __register_frame(void *begin);
EXPORTED void __register_frame_info(const void *begin, struct object *object);
EXPORTED void __register_frame_info_bases(const void *begin, struct object *object, void *text,
					  void *data);
EXPORTED void __register_frame_table(void *begin);
EXPORTED void __register_frame_info_table(void *begin, struct object *object);
EXPORTED void __register_frame_info_table_bases(void *begin, struct object *object, void *text,
						void *data);
EXPORTED void __deregister_frame(void *begin);
EXPORTED void *__deregister_frame_info(const void *begin);
EXPORTED void *__deregister_frame_info_bases(const void *begin);

/*
 * GDB's: there is something new in the list that __jit_debug_descriptor leads to, or something
 * goes.
 */
EXPORTED void __jit_debug_register_code(void);

/* An object is unloaded: functions that were found in it are to be looked for again. */
void register_frame_forget(void);
void gdb_jit_forget(void);

#endif
