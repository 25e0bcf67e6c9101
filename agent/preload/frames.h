/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind information that is handed to the C++ runtime at run time, registered as regions of code.
 */
#ifndef AGENT_FRAMES_H
#define AGENT_FRAMES_H

#include "fde.h"

/*
 * frames_add, frames_remove - the addresses that the entries from @begin on describe
 *
 * One region when nothing else is between its functions, else one for each of them. The entries
 * have to be unchanged, and to stay until they are removed: unwinders demand that, too. Threads:
 * any. errno is kept.
 */
void frames_add(const void *begin, enum fde_run run);
void frames_remove(const void *begin, enum fde_run run);

#endif
