/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of an OTLP request that things are put into once: strings, attributes, stacks
 * (otlp_tables.c); and the dictionary, which has them and the profile's own (otlp_dictionary.c).
 */
#ifndef EXPORT_OTLP_TABLES_H
#define EXPORT_OTLP_TABLES_H

#include "export/profile_impl.h"
#include "otlp.pb-c.h"

typedef CairnOtlp__AnyValue pb_any_value;
typedef CairnOtlp__KeyValue pb_key_value;
typedef CairnOtlp__KeyValueAndUnit pb_attribute;
typedef CairnOtlp__Stack pb_stack;
typedef CairnOtlp__ProfilesDictionary pb_dictionary;

/* A result when memory is out is of no use; "failed" says so. */
struct otlp_tables {
	struct arena arena; /* all messages */
	VEC(const char *) strings;
	VEC(pb_attribute *) attributes;
	VEC(pb_stack *) stacks;
	struct map string_ids, attribute_ids, stack_ids;
	bool failed; /* out of memory */
};

void otlp_tables_init(struct otlp_tables *t);
void otlp_tables_fini(struct otlp_tables *t);

/* @n zeroed items of @size bytes; NULL when out of memory. */
void *otlp_take(struct otlp_tables *t, size_t n, size_t size);
/* An array of @n messages of @size bytes, as protobuf-c has them: pointers. */
void *otlp_messages(struct otlp_tables *t, size_t n, size_t size);

/* The text as UTF-8. */
const char *otlp_text(struct otlp_tables *t, const char *text);

/* Indices. The index of "" is 0, as is that of a stack without frames. */
int32_t otlp_string(struct otlp_tables *t, const char *text);
int32_t otlp_stack(struct otlp_tables *t, const uint32_t *stack, size_t n);
int32_t otlp_attribute(struct otlp_tables *t, const char *key, const pb_any_value *value,
		       const char *unit);
int32_t otlp_true(struct otlp_tables *t, const char *key);

/* Values; a text is borrowed, or the tables' own. */
pb_any_value otlp_text_value(struct otlp_tables *t, const char *text);
pb_any_value otlp_number_value(int64_t number);

/* All tables. After all else is in @t, which the dictionary refers to. */
void otlp_put_dictionary(const struct cairn_profile *p, struct otlp_tables *t, pb_dictionary *out);

#endif
