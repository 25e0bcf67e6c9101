/* SPDX-License-Identifier: BSD-2-Clause */
/* Words that a mistyped one may mean. */
#ifndef CLI_NEAR_H
#define CLI_NEAR_H

#include <stdbool.h>
#include <stddef.h>

/*
 * near_word - whether a word may be a slip of the finger for another one
 *
 * @typed  @len letters of it count
 * True if a letter is missing, added, replaced, or swapped with its neighbour, and if @typed has at
 * least three letters and @word begins with them. False for equal words.
 */
bool near_word(const char *typed, size_t len, const char *word);

/* A line with near names, most of them after a message that a name was not found. @n may be 0. */
enum { SUGGESTIONS_MAX = 5 };
void say_near(const char *const *names, int n);

#endif
