/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * malloc() of verbs that read a whole file's debug information
 *
 * Such a verb has arrays of megabytes, some for one stage only. glibc takes large blocks from the
 * kernel one by one and gives them back when they are freed. But each free teaches it to keep
 * blocks of that size, up to 32 MiB: then the memory of a finished stage stays with the process
 * while the next one allocates more. On vmlinux that is a quarter of the peak.
 */
#ifndef CLI_MALLOC_TUNING_H
#define CLI_MALLOC_TUNING_H

/*
 * From now on blocks of a megabyte and more go back when they are freed. For a program to say, not
 * for a library.
 */
void malloc_return_large_blocks(void);

#endif
