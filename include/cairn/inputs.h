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
 * cairn_inputs_shortened - an input that has become shorter since it was mapped
 *
 * The missing part of a page reads as zeros and raises no signal. So a caller queries this before
 * it trusts a result.
 *
 * Returns the name of the first such file, as cairn_input_at() gives it and valid until the program
 * ends; NULL if there is none. A file that was replaced by another one does not count. Once a file
 * was noticed, this reports it as long as the program runs, and cairn_file_write() (cairn/file.h)
 * writes nothing from then on: results made of that input cannot be trusted.
 * Cost: a stat(2) for each file that is open. Threads: any. Signals: not safe.
 */
const char *cairn_inputs_shortened(void);

CAIRN_END_DECLS
#endif
