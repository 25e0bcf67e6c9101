/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A loop whose condition is tested behind the call
 *
 *	while (*e && !equals(*e, key))          P:      cmp  %rsi,%rbp          equals begins: e1 ==
 *	e2
 *		e = &(*e)->next;				je   out
 *							test %rsi,%rsi		*e
 *							je   out
 *							cmp  %eax,8(%rsi)	equals goes on
 *
 * Both conditions leave the loop, and GCC tests the cheaper one first, which is the function's. So
 * the site is passed with a NULL for which the call is not made. What shows it is the test for NULL
 * of a pointer that the code reads through next, to the same exit. A function that begins with both
 * tests itself looks the same.
 */
#ifndef SITES_TESTED_H
#define SITES_TESTED_H

#include "sites/event_count.h"

/*
 * Whether the condition of a call in a loop is tested behind its site. @at: the site. Cost: a few
 * instructions, most sites none.
 */
bool tested_is_behind(const struct event_count *p, uint32_t at);

#endif
