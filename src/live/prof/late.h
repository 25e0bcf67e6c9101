/* SPDX-License-Identifier: BSD-2-Clause */
/* How the kernel calls a program when its task may wait (bpf/late.bpf.h), and the program for that. */
#ifndef PROF_LATE_H
#define PROF_LATE_H

enum late_form {
	LATE_NONE,
	LATE_6_18,
	LATE_7_0,
};

struct profile_bpf;

/*
 * By the kernel's version, as a look into its types takes longer than loading. A kernel that says no
 * is asked again without.
 */
enum late_form late_form_of_kernel(void);

/*
 * late_open - the programs of a profile, which know one form of the call
 *
 * libbpf takes a call that may be missing for an error if the kernel has one of that name with other
 * arguments, as 7.0 has that of 6.18. So the other form's name is made unknown.
 *
 * @ret_bytes  the object's file, in use until it is loaded; free()
 * Returns NULL: no memory, or libbpf does not take the object.
 */
struct profile_bpf *late_open(enum late_form form, void **ret_bytes);

#endif
