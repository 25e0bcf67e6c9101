/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recognises a loop whose condition is tested after the call begins
 *
 *	while (*e && !equals(*e, key))		P:	cmp  %rsi,%rbp		equals begins:
 *								je   out		e1 == e2
 *		e = &(*e)->next;			test %rsi,%rsi		*e
 *							je   out
 *							cmp  %eax,8(%rsi)	equals goes on
 *
 * Both conditions leave the loop, and GCC tests the cheaper one first, which is the function's. So
 * the site is hit with a NULL for which no call is made. The sign is a test for NULL, with the same
 * exit, of a pointer that the code reads through next. A function that begins with both tests
 * itself looks the same. Lines show the same error at an if (event_count.c,
 * docs/findings/gcc-arms-begin-alike.md).
 */
#ifndef SITES_QUIRKS_TESTED_AFTER_CALL_H
#define SITES_QUIRKS_TESTED_AFTER_CALL_H

#include "sites/event_count.h"

/*
 * True if the condition of a call in a loop is tested after its site. @at: the site. Cost: a few
 * instructions, most sites none.
 */
bool tested_after_call_is(const struct event_count *p, uint32_t at);

#endif
