/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A number in a range. cmocka has two names for it, each of which only some of its versions take.
 */
#ifndef SAMPLES_BETWEEN_H
#define SAMPLES_BETWEEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Both ends belong to the range. */
#define assert_between(number, least, most)                                                        \
	do {                                                                                       \
		uintmax_t number_ = (number), least_ = (least), most_ = (most);                    \
		if (number_ < least_ || number_ > most_)                                           \
			fail_msg("%s is %ju, not %ju to %ju", #number, number_, least_, most_);    \
	} while (0)

#endif
