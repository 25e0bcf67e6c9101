/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recipes: strings and arrays of C++, Rust and Go
 *
 * To a debugger a std::string is a struct of a pointer, a length and a union. The table gives its
 * meaning, with one row for each kind of type: its name, its size, and the paths to the members
 * that count.
 *
 *	std::vector<*           24 bytes        _M_impl._M_start, up to _M_impl._M_finish
 *	  class vector : protected _Vector_base {
 *	          _Vector_impl _M_impl: _Vector_impl_data { T *_M_start, ... } }
 *
 * The name chooses the row, and is trusted no further: any program may call a struct
 * std::vector<int>, and libraries change. Each member of a path has to exist by its name; the last
 * one has to be a pointer, or a number of a word; the words have to be different and inside; the
 * size has to be that of the row. Otherwise there is no recipe, and the struct is shown as a plain
 * struct. A path goes through base classes by itself; "*" follows the only member that has a size,
 * whatever its layers are called, down to a pointer.
 *
 * A row for another library or an older version is one more row.
 */
#include "decode/recipe.h"

#include <string.h>

enum {
	WORD_BYTES = 8,
	PATH_DEPTH_MAX = 16,
};

/* More bytes than any address space has. */
static const uint64_t TARGET_MAX = UINT64_C(1) << 47;

struct row {
	const char *name; /* a * at its end: anything after */
	enum recipe_kind kind;
	uint64_t size;
	const char *ptr, *count;
	bool count_is_end;
	bool by_parameter; /* elements are of the type that the struct is made for (ref) */
	/* a struct with the length and bytes of a text that is inside; see read_inside() */
	const char *inside;
};

static const struct row rows[] = {
	/* libstdc++ */
	{"std::__cxx11::basic_string<char,*", RECIPE_TEXT, 32, "_M_dataplus._M_p",
	 "_M_string_length"},
	{"std::basic_string_view<char,*", RECIPE_TEXT, 16, "_M_str", "_M_len"},
	{"std::vector<*", RECIPE_ARRAY, 24, "_M_impl._M_start", "_M_impl._M_finish",
	 .count_is_end = true},
	{"std::unique_ptr<*", RECIPE_POINTER, 8, "_M_t.*", NULL},
	/* libc++ */
	{"std::__1::basic_string<char,*", RECIPE_TEXT, 24, "__r_.__value_.__l.__data_",
	 "__r_.__value_.__l.__size_", .inside = "__r_.__value_.__s"},
	{"std::__1::basic_string<char,*", RECIPE_TEXT, 24, "__rep_.__l.__data_",
	 "__rep_.__l.__size_", .inside = "__rep_.__s"},
	{"std::__1::basic_string_view<char,*", RECIPE_TEXT, 16, "__data", "__size"},
	{"std::__1::basic_string_view<char,*", RECIPE_TEXT, 16, "__data_", "__size_"},
	{"std::__1::vector<*", RECIPE_ARRAY, 24, "__begin_", "__end_", .count_is_end = true},
	{"std::__1::unique_ptr<*", RECIPE_POINTER, 8, "__ptr_.*", NULL},
	/* Rust */
	{"&str", RECIPE_TEXT, 16, "data_ptr", "length"},
	{"&mut str", RECIPE_TEXT, 16, "data_ptr", "length"},
	{"&[*", RECIPE_ARRAY, 16, "data_ptr", "length"},
	{"&mut [*", RECIPE_ARRAY, 16, "data_ptr", "length"},
	{"alloc::string::String", RECIPE_TEXT, 24, "vec.buf.inner.ptr.*", "vec.len"},
	{"alloc::string::String", RECIPE_TEXT, 24, "vec.buf.ptr.*", "vec.len"},
	{"alloc::vec::Vec<*", RECIPE_ARRAY, 24, "buf.inner.ptr.*", "len", .by_parameter = true},
	{"alloc::vec::Vec<*", RECIPE_ARRAY, 24, "buf.ptr.*", "len", .by_parameter = true},
	/* Go */
	{"string", RECIPE_TEXT, 16, "str", "len"},
	{"[]*", RECIPE_ARRAY, 24, "array", "len"},
};

static const struct cairn_type *type_at(const struct cairn_types *types, uint32_t id)
{
	return cairn_types_get(types, cairn_types_resolve(types, id));
}

static bool is_record(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS;
}

/* ---- paths ---- */

/* The position that a path has reached. */
struct place {
	uint32_t type;
	uint64_t off;
};

static bool is_plain(const struct cairn_member *m)
{
	return !m->dynamic && !m->bit_size && m->bit_off % 8 == 0;
}

/*
 * The member called by the first @n characters of @name, of the struct, of its base classes or of
 * unions in it without a name.
 */
static bool step_to(const struct cairn_types *types, struct place *at, const char *name, size_t n,
		    unsigned int depth)
{
	const struct cairn_type *t = type_at(types, at->type);
	bool is_inner_union = depth && t->kind == CAIRN_T_UNION && !t->variants;
	if ((!is_record(t) && !is_inner_union) || t->unread || t->declaration ||
	    depth == PATH_DEPTH_MAX)
		return false;
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		struct place in = {m->type, at->off + m->bit_off / 8};
		bool is_it =
			m->name && !m->is_base_class && !strncmp(m->name, name, n) && !m->name[n];
		bool is_looked_through =
			m->is_base_class ||
			(!m->name && type_at(types, m->type)->kind == CAIRN_T_UNION);
		if (!is_plain(m) ||
		    (!is_it && !(is_looked_through && step_to(types, &in, name, n, depth + 1))))
			continue;
		*at = in;
		return true;
	}
	return false;
}

/* A class without members, or of such: its bytes may be used by others. */
static bool is_empty(const struct cairn_types *types, uint32_t id, unsigned int depth)
{
	const struct cairn_type *t = type_at(types, id);
	if (!is_record(t) || t->unread || t->declaration || depth == PATH_DEPTH_MAX)
		return false;
	for (uint32_t i = 0; i < t->n_members; i++)
		if (!is_empty(types, t->members[i].type, depth + 1))
			return false;
	return true;
}

/* The only member or base class with a size. */
static bool step_inside(const struct cairn_types *types, struct place *at)
{
	const struct cairn_type *t = type_at(types, at->type);
	const struct cairn_member *only = NULL;
	if (!is_record(t) || t->unread || t->declaration)
		return false;
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		if (!cairn_types_size(types, m->type) || is_empty(types, m->type, 0))
			continue;
		if (only)
			return false;
		only = m;
	}
	if (!only || !is_plain(only))
		return false;
	*at = (struct place){only->type, at->off + only->bit_off / 8};
	return true;
}

static bool follow(const struct cairn_types *types, uint32_t id, const char *path,
		   struct place *ret)
{
	*ret = (struct place){.type = id};
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, ".");
		if (*p == '*') {
			for (int i = 0;
			     i < PATH_DEPTH_MAX && type_at(types, ret->type)->kind != CAIRN_T_PTR;
			     i++)
				if (!step_inside(types, ret))
					return false;
			return true;
		}
		if (!step_to(types, ret, p, n, 0))
			return false;
		p += n + (p[n] == '.');
	}
	return true;
}

/* ---- rows ---- */

static bool is_named(const char *name, const char *pattern)
{
	size_t n = strlen(pattern);
	return pattern[n - 1] == '*' ? !strncmp(name, pattern, n - 1) : !strcmp(name, pattern);
}

static bool is_byte(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = type_at(types, id);
	return t->kind == CAIRN_T_INT && t->size == 1 && t->encoding != CAIRN_ENC_BOOL;
}

static bool is_pointer(const struct cairn_types *types, const struct place *at)
{
	const struct cairn_type *t = type_at(types, at->type);
	return t->kind == CAIRN_T_PTR && t->size == WORD_BYTES;
}

static bool is_count(const struct cairn_types *types, const struct place *at)
{
	const struct cairn_type *t = type_at(types, at->type);
	return t->kind == CAIRN_T_INT && t->size == WORD_BYTES && t->encoding != CAIRN_ENC_OPAQUE;
}

static uint32_t target_of(const struct cairn_types *types, const struct place *at)
{
	return cairn_types_resolve(types, type_at(types, at->type)->ref);
}

static bool read_count(const struct cairn_types *types, uint32_t id, const struct row *row,
		       const struct place *ptr, struct recipe *ret)
{
	struct place count;
	if (!follow(types, id, row->count, &count))
		return false;
	bool fits = row->count_is_end ? is_pointer(types, &count) &&
						target_of(types, &count) == target_of(types, ptr)
				      : is_count(types, &count);
	uint64_t apart = count.off > ptr->off ? count.off - ptr->off : ptr->off - count.off;
	ret->count = count.off;
	ret->count_is_end = row->count_is_end;
	return fits && apart >= WORD_BYTES && count.off + WORD_BYTES <= ret->size;
}

/*
 * libc++ keeps up to 22 characters where the pointer and both numbers are otherwise:
 *
 *	struct { unsigned char __size_; char __data_[23]; }        length * 2; the capacity is even
 *	struct { __is_long_ : 1, __size_ : 7; char __data_[23]; }  from LLVM 16 on
 *
 * The lowest bit of the first byte decides. Its other ABI has them at the end, and no recipe.
 */
static bool read_inside(const struct cairn_types *types, uint32_t id, const struct row *row,
			struct recipe *ret)
{
	struct place in;
	struct cairn_member length, data;
	if (!row->inside)
		return true;
	if (!follow(types, id, row->inside, &in) ||
	    !cairn_types_member(types, in.type, "__size_", &length) ||
	    !cairn_types_member(types, in.type, "__data_", &data) || in.off || length.dynamic ||
	    data.dynamic)
		return false;
	const struct cairn_type *t = type_at(types, data.type);
	bool is_byte_length = !length.bit_size && !length.bit_off && is_byte(types, length.type);
	bool is_7_bits = length.bit_size == 7 && length.bit_off == 1;
	ret->inside = data.bit_off / 8;
	ret->n_inside = t->size - 1;
	return (is_byte_length || is_7_bits) && t->kind == CAIRN_T_ARRAY && t->size > 1 &&
	       is_byte(types, t->ref) && data.bit_off == 8 && t->size < row->size && !data.bit_size;
}

static bool fits(const struct cairn_types *types, uint32_t id, const struct row *row,
		 struct recipe *ret)
{
	const struct cairn_type *t = type_at(types, id);
	struct place ptr;
	*ret = (struct recipe){.kind = row->kind, .size = t->size};
	if (t->size != row->size || !follow(types, id, row->ptr, &ptr) ||
	    !is_pointer(types, &ptr) || ptr.off + WORD_BYTES > t->size)
		return false;
	ret->ptr = ptr.off;
	if (row->kind == RECIPE_POINTER)
		return true;
	if (!read_count(types, id, row, &ptr, ret))
		return false;
	if (row->kind == RECIPE_TEXT) {
		ret->element_bytes = 1;
		return is_byte(types, target_of(types, &ptr)) && read_inside(types, id, row, ret);
	}
	ret->element = row->by_parameter ? t->ref : type_at(types, ptr.type)->ref;
	ret->element_bytes = cairn_types_size(types, ret->element);
	return ret->element && ret->element_bytes;
}

bool recipe_of(const struct cairn_types *types, uint32_t id, struct recipe *ret)
{
	const struct cairn_type *t = type_at(types, id);
	*ret = (struct recipe){0};
	if (!is_record(t) || !t->name || t->unread || t->declaration)
		return false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (is_named(t->name, rows[i].name) && fits(types, id, &rows[i], ret))
			return true;
	*ret = (struct recipe){0};
	return false;
}

bool recipe_may_be(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = type_at(types, id);
	for (size_t i = 0; is_record(t) && t->name && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (is_named(t->name, rows[i].name))
			return true;
	return false;
}

static unsigned int list(const struct cairn_types *types, uint32_t id, uint64_t off,
			 struct recipe_at *ret, unsigned int max, unsigned int depth)
{
	const struct cairn_type *t = type_at(types, id);
	struct recipe_at found = {.off = off};
	unsigned int n = 0;
	/* Any of the variants may be there. */
	if (!max || (!is_record(t) && !t->variants) || t->unread || t->declaration ||
	    depth == PATH_DEPTH_MAX)
		return 0;
	if (recipe_of(types, id, &found.recipe)) {
		ret[0] = found;
		return found.recipe.kind != RECIPE_POINTER;
	}
	for (uint32_t i = 0; i < t->n_members && n < max; i++)
		if (is_plain(&t->members[i]))
			n += list(types, t->members[i].type, off + t->members[i].bit_off / 8,
				  ret + n, max - n, depth + 1);
	return n;
}

unsigned int recipe_all(const struct cairn_types *types, uint32_t id, struct recipe_at *ret,
			unsigned int max)
{
	return list(types, id, 0, ret, max, 0);
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t v;
	memcpy(&v, bytes, sizeof(v));
	return v;
}

bool recipe_target(const struct recipe *recipe, const uint8_t *bytes, struct recipe_target *ret)
{
	uint64_t at = word_at(bytes + recipe->ptr), n = word_at(bytes + recipe->count);
	if (recipe->count_is_end) {
		*ret = (struct recipe_target){at, n - at};
		return n >= at && n - at < TARGET_MAX && (n - at) % recipe->element_bytes == 0;
	}
	*ret = (struct recipe_target){at, n * recipe->element_bytes};
	return n < TARGET_MAX / recipe->element_bytes;
}

int recipe_inside(const struct recipe *recipe, const uint8_t *bytes, const uint8_t **text,
		  uint64_t *n)
{
	if (!recipe->n_inside || bytes[recipe->length] & 1)
		return 0;
	*text = bytes + recipe->inside;
	*n = bytes[recipe->length] >> 1;
	return *n <= recipe->n_inside ? 1 : -1;
}

/* ---- wide characters ---- */

static bool is_wide_name(const char *name)
{
	return name &&
	       (!strcmp(name, "wchar_t") || !strcmp(name, "char16_t") || !strcmp(name, "char32_t"));
}

uint8_t wide_char_bytes(const struct cairn_types *types, uint32_t id)
{
	enum { LAYERS_MAX = 64 };
	const struct cairn_type *own = type_at(types, id);

	if (own->kind != CAIRN_T_INT || own->byte_swapped || (own->size != 2 && own->size != 4))
		return 0;
	for (int i = 0; i < LAYERS_MAX; i++) {
		const struct cairn_type *t = cairn_types_get(types, id);
		bool is_layer = t->kind == CAIRN_T_TYPEDEF || t->kind == CAIRN_T_CONST ||
				t->kind == CAIRN_T_VOLATILE;
		if (is_wide_name(t->name))
			return (uint8_t)own->size;
		if (!is_layer)
			break;
		id = t->ref;
	}
	return 0;
}
