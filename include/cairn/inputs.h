/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles input files that change while they are mapped
 *
 * The library maps the files that it reads. If another program makes such a file shorter meanwhile,
 * the next read of the missing part raises SIGBUS. The library installs no signal handlers; a
 * program's handler can query here which file it was:
 *
 *	static void on_bus_error(int signal, siginfo_t *info, void *context)
 *	{
 *		const char *name = cairn_input_at(info->si_addr);
 *		...
 */
#ifndef CAIRN_INPUTS_H
#define CAIRN_INPUTS_H

#include <cairn/api.h>

CAIRN_BEGIN_DECLS

/*
 * cairn_input_at - the file that is mapped at @address
 *
 * Returns its name, quoted as text (cairn/quote.h) and cut after some 200 characters; NULL when no
 * input is mapped there. The name is valid while the file is open. Threads: any; may be called by a
 * signal handler.
 */
const char *cairn_input_at(const void *address);

/*
 * cairn_inputs_shortened - the first input of the program that became shorter while it was mapped
 *
 * The missing part of a page reads as zeros and raises no signal. So a program that answers one
 * question queries this before it trusts its answer. A program with many questions queries the
 * handles that an answer is made of: cairn_binary_shortened(), cairn_source_shortened(),
 * cairn_btf_shortened(), cairn_sidecar_shortened().
 *
 * Returns its name, as cairn_input_at() gives it and valid until the program ends; NULL if there
 * is none. A file that was replaced by another one does not count. Once a file was noticed, this
 * reports it as long as the program runs; nothing else depends on that.
 * Cost: a stat(2) for each file that is open. Threads: any. Signals: not safe.
 */
const char *cairn_inputs_shortened(void);

CAIRN_END_DECLS
#endif
