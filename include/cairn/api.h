/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wrapper around the declarations of every public header: C linkage, and visible outside the
 * library.
 */
#ifndef CAIRN_API_H
#define CAIRN_API_H

#ifdef __cplusplus
#define CAIRN_BEGIN_DECLS                                                                          \
	extern "C" {                                                                               \
	_Pragma("GCC visibility push(default)")
#define CAIRN_END_DECLS                                                                            \
	_Pragma("GCC visibility pop")                                                              \
	}
#else
#define CAIRN_BEGIN_DECLS _Pragma("GCC visibility push(default)")
#define CAIRN_END_DECLS   _Pragma("GCC visibility pop")
#endif

#endif
