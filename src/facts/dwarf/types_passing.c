/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How C++ passes a class: as a copy of its bytes, or by the address of an object of the caller
 *
 * The Itanium C++ ABI (3.1.1, "non-trivial for the purposes of calls") decides. A class goes by
 * address when it has a non-trivial copy constructor, move constructor or destructor, or when all
 * its copy and move constructors are deleted.
 *
 * Clang writes the decision down (DW_AT_calling_convention of the class). GCC does not, but it
 * lists what the source declares, from version 8 on with DW_AT_defaulted and DW_AT_deleted. The
 * rest follows from the rules of the language:
 *
 *	declared in the class     copy constructor   move constructor
 *	C(const C &) { ... }      non-trivial        absent, the copy constructor serves
 *	C(const C &) = default    as the parts are   absent
 *	C(C &&) = default         deleted            as the parts are
 *	operator=(C &&)           deleted            absent
 *	~C() = default            as the parts are   absent
 *	none of these             as the parts are   as the parts are
 *
 * GCC counts an implicit constructor as not deleted, also where a part deletes it, unless the class
 * declares a move constructor or a move assignment. Clang passes such a class by address
 * (docs/findings/gcc-implicit-copy-is-deleted.md).
 *
 * The parts are base classes and members. A virtual function or base makes both constructors
 * non-trivial. If the debug information leaves a fact open (a second parameter that may have a
 * default), the answer is open, too.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "dwarf/types_inside.h"
#include "dwarf/types_read.h"

enum {
	/* Classes within classes; real ones have less than 30. */
	DEPTH_MAX = 128,
	/* Typedefs and qualifiers between a parameter and its class. */
	CHAIN_MAX = 64,
};

/*
 * The class's declaration of one special member. If there are several declarations, the largest
 * counts.
 */
enum declared { NOT_DECLARED, OPEN, DELETED_IN_CLASS, DEFAULTED_IN_CLASS, PROVIDED };

/* The state of a special member. */
enum fate { TRIVIAL, NON_TRIVIAL, DELETED, UNSURE, ABSENT };

struct special {
	enum declared copy, move, destructor;
	bool assigns_copy, assigns_move;
	bool is_virtual; /* a virtual function, or a virtual base class */
};

struct fates {
	enum fate copy, move, destructor;
	bool is_implicit; /* GCC counts a copy or a move constructor as not deleted */
	bool is_complex;  /* the class or a part has a non-trivial one, which may be deleted */
};

static const struct fates unsure = {UNSURE, UNSURE, UNSURE, false, false};

/* ---- the declarations of a class ---- */

/* The class that a parameter refers to: T &, const T &; @is_rvalue for T &&. Else 0. */
static dw_off referred_class(const struct dw_die *param, bool *is_rvalue)
{
	struct dw_die type;
	dw_off off = dw_ref(param, DW_AT_type);
	bool is_reference = false;
	for (int i = 0; i < CHAIN_MAX && off && dw_die_near(param->unit, off, &type, NULL) == 1;
	     i++) {
		if (type.tag == DW_TAG_reference_type || type.tag == DW_TAG_rvalue_reference_type) {
			is_reference = true;
			*is_rvalue = type.tag == DW_TAG_rvalue_reference_type;
		} else if (type.tag != DW_TAG_const_type && type.tag != DW_TAG_volatile_type &&
			   type.tag != DW_TAG_typedef) {
			dw_off whole = dw_ref(&type, DW_AT_signature);
			return is_reference ? (whole ? whole : type.off) : 0;
		}
		off = dw_ref(&type, DW_AT_type);
	}
	return 0;
}

struct params {
	struct dw_die first; /* "this" aside */
	unsigned int n;
	bool is_template;
};

static void list_params(const struct dw_die *function, struct params *ret)
{
	struct dw_die child;
	*ret = (struct params){0};
	for (int rc = dw_die_child(function, &child, NULL); rc == 1;
	     rc = dw_die_sibling(&child, &child, NULL)) {
		if (child.tag == DW_TAG_template_type_parameter ||
		    child.tag == DW_TAG_template_value_parameter ||
		    child.tag == DW_TAG_GNU_template_template_param ||
		    child.tag == DW_TAG_GNU_template_parameter_pack)
			ret->is_template = true;
		bool is_param = child.tag == DW_TAG_formal_parameter ||
				child.tag == DW_TAG_unspecified_parameters;
		if (!is_param || dw_flag(&child, DW_AT_artificial))
			continue;
		if (!ret->n++)
			ret->first = child;
	}
}

static enum declared how_declared(const struct dw_die *function)
{
	enum { IN_CLASS = 1 };
	if (dw_udata(function, DW_AT_defaulted, 0) == IN_CLASS)
		return DEFAULTED_IN_CLASS;
	return dw_flag(function, DW_AT_deleted) ? DELETED_IN_CLASS : PROVIDED;
}

/* A class that is defined after its declaration has two DIEs. */
static bool is_same(const struct dw_die *class, dw_off off)
{
	return off && (off == class->off || off == dw_ref(class, DW_AT_specification));
}

static void raise_to(enum declared *to, enum declared by)
{
	*to = by > *to ? by : *to;
}

static void note_constructor(const struct dw_die *class, const struct dw_die *function,
			     struct special *s)
{
	struct params p;
	bool is_rvalue = false;
	list_params(function, &p);
	/* An instance of a template is never a copy or move constructor. */
	if (!p.n || p.is_template || !is_same(class, referred_class(&p.first, &is_rvalue)))
		return;
	/* Whether the other parameters have defaults is not in the debug information. */
	raise_to(is_rvalue ? &s->move : &s->copy, p.n == 1 ? how_declared(function) : OPEN);
}

static void note_assignment(const struct dw_die *class, const struct dw_die *function,
			    struct special *s)
{
	struct params p;
	bool is_rvalue = false;
	list_params(function, &p);
	if (p.is_template || p.n != 1 || !is_same(class, referred_class(&p.first, &is_rvalue)))
		return;
	s->assigns_move |= is_rvalue;
	s->assigns_copy |= !is_rvalue;
}

/* "pair" of "pair<int, int>". */
static bool is_name_of(const char *constructor, const char *class)
{
	size_t n = strlen(constructor);
	return n && !strncmp(constructor, class, n) && (!class[n] || class[n] == '<');
}

static void note_function(const struct dw_die *class, const char *class_name,
			  const struct dw_die *function, struct special *s)
{
	const char *name = dw_str(function, DW_AT_name);
	s->is_virtual |= dw_udata(function, DW_AT_virtuality, 0) != 0;
	if (!name || dw_flag(function, DW_AT_artificial))
		return;
	if (name[0] == '~')
		raise_to(&s->destructor, how_declared(function));
	else if (!strcmp(name, "operator="))
		note_assignment(class, function, s);
	else if (class_name && is_name_of(name, class_name))
		note_constructor(class, function, s);
}

static void read_special(const struct dw_die *class, struct special *ret)
{
	const char *name = dw_str_deep(class, DW_AT_name);
	struct dw_die child;
	*ret = (struct special){0};
	for (int rc = dw_die_child(class, &child, NULL); rc == 1;
	     rc = dw_die_sibling(&child, &child, NULL)) {
		if (child.tag == DW_TAG_inheritance)
			ret->is_virtual |= dw_udata(&child, DW_AT_virtuality, 0) != 0;
		else if (child.tag == DW_TAG_subprogram)
			note_function(class, name, &child, ret);
	}
}

/* ---- their consequences ---- */

static enum fate worse(enum fate a, enum fate b)
{
	return a > b ? a : b;
}

static void add_part(struct fates *all, struct fates part, bool in_union)
{
	part.move = part.move == ABSENT ? part.copy : part.move;
	/* A union cannot know which of its members to copy. */
	if (in_union) {
		part.copy = part.copy == NON_TRIVIAL ? DELETED : part.copy;
		part.move = part.move == NON_TRIVIAL ? DELETED : part.move;
		part.destructor = part.destructor == NON_TRIVIAL ? DELETED : part.destructor;
	}
	all->is_complex |= part.is_complex;
	all->copy = worse(all->copy, part.copy);
	all->move = worse(all->move, part.move);
	all->destructor = worse(all->destructor, part.destructor);
}

static enum fate fate_of(enum declared declared, enum fate implicit)
{
	switch (declared) {
	case PROVIDED:
		return NON_TRIVIAL;
	case DELETED_IN_CLASS:
		return DELETED;
	case OPEN:
		return UNSURE;
	default:
		return implicit;
	}
}

static struct fates settle(const struct special *s, struct fates parts)
{
	if (s->is_virtual) {
		parts.copy = worse(parts.copy, NON_TRIVIAL);
		parts.move = worse(parts.move, NON_TRIVIAL);
	}
	bool moves = s->move != NOT_DECLARED || s->assigns_move;
	bool copies = s->copy != NOT_DECLARED || s->assigns_copy;
	bool keeps_move =
		s->move != NOT_DECLARED || (!copies && !moves && s->destructor == NOT_DECLARED);
	struct fates ret = {
		.copy = fate_of(s->copy, moves ? DELETED : parts.copy),
		.move = fate_of(s->move, keeps_move ? parts.move : ABSENT),
		.destructor = fate_of(s->destructor, parts.destructor),
		.is_implicit = (keeps_move && s->move == NOT_DECLARED) ||
			       (s->copy == NOT_DECLARED && !moves),
		.is_complex = parts.is_complex || s->is_virtual || s->copy == PROVIDED ||
			      s->move == PROVIDED,
	};
	if (s->copy == DEFAULTED_IN_CLASS)
		ret.copy = parts.copy;
	/* One that is deleted because of a part is as if it were not declared. */
	if (ret.move == DELETED && s->move != DELETED_IN_CLASS)
		ret.move = ABSENT;
	return ret;
}

/* ---- classes within classes ---- */

static struct fates fates_of(struct dw_types *r, uint32_t id, unsigned int depth);

static struct fates fates_of_member(struct dw_types *r, const struct cairn_member *m,
				    unsigned int depth)
{
	const struct cairn_type *t =
		cairn_types_get(r->graph, cairn_types_resolve(r->graph, m->type));
	/* An rvalue reference is moved, and cannot be copied. */
	if (t->kind == CAIRN_T_RREF)
		return (struct fates){.copy = DELETED};
	return fates_of(r, types_substance(r->graph, m->type), depth + 1);
}

/* The decision that the compiler wrote down. */
static bool read_fates(const struct dw_die *class, struct fates *ret)
{
	uint64_t how = dw_udata(class, DW_AT_calling_convention, 0);
	*ret = (struct fates){0};
	if (how == DW_CC_pass_by_reference)
		ret->copy = NON_TRIVIAL;
	return how == DW_CC_pass_by_reference || how == DW_CC_pass_by_value;
}

/*
 * Type units, and the partial units of dwz, name no producer. The unit of the function decides
 * then.
 */
static bool may_list_special(const struct dw_unit *u)
{
	return !u->producer[0] || dw_unit_lists_special_members(u);
}

static struct fates deduce_fates(struct dw_types *r, uint32_t id, const struct dw_die *class,
				 unsigned int depth)
{
	const struct cairn_type *t = cairn_types_get(r->graph, id);
	struct fates parts = {0}, ret;
	struct special special;
	if (read_fates(class, &ret))
		return ret;
	if (t->unread || t->declaration || depth >= DEPTH_MAX || !may_list_special(class->unit))
		return unsure;
	read_special(class, &special);
	for (uint32_t i = 0; i < t->n_members; i++)
		add_part(&parts, fates_of_member(r, &t->members[i], depth),
			 t->kind == CAIRN_T_UNION);
	return settle(&special, parts);
}

static bool is_class(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION;
}

/* As the value of a map. */
enum { FATE_BITS = 8, FATE_MASK = 0xff };

static uint64_t pack(struct fates f)
{
	return (uint64_t)f.copy | (uint64_t)f.move << FATE_BITS |
	       (uint64_t)f.destructor << 2 * FATE_BITS | (uint64_t)f.is_implicit << 3 * FATE_BITS |
	       (uint64_t)f.is_complex << 4 * FATE_BITS;
}

static struct fates unpack(uint64_t v)
{
	return (struct fates){(enum fate)(v & FATE_MASK), (enum fate)(v >> FATE_BITS & FATE_MASK),
			      (enum fate)(v >> 2 * FATE_BITS & FATE_MASK),
			      v >> 3 * FATE_BITS & FATE_MASK, v >> 4 * FATE_BITS & FATE_MASK};
}

/* @id is a part of a value, and complete. */
static struct fates fates_of(struct dw_types *r, uint32_t id, unsigned int depth)
{
	struct dw_die class;
	uint64_t known, off;
	if (!is_class(cairn_types_get(r->graph, id)))
		return (struct fates){0};
	if (map_get(&r->fates, id, &known))
		return unpack(known);
	if (!map_get(&r->unread, id, &off) || dw_die_at(r->dw, off, &class, NULL) != 1)
		return unsure;
	/* A class that contains itself, as in damaged input, must end here. */
	if (map_put(&r->fates, id, pack(unsure)) < 0)
		return unsure;
	struct fates ret = deduce_fates(r, id, &class, depth);
	/* It replaces a value, which needs no memory. */
	(void)map_put(&r->fates, id, pack(ret));
	return ret;
}

static enum dw_passing passing_of(struct fates f)
{
	bool copies = f.copy == TRIVIAL || f.copy == UNSURE,
	     moves = f.move == TRIVIAL || f.move == UNSURE;
	if (f.copy == NON_TRIVIAL || f.move == NON_TRIVIAL || f.destructor == NON_TRIVIAL)
		return DW_PASSED_BY_ADDRESS;
	if (f.copy == UNSURE || f.move == UNSURE || f.destructor == UNSURE ||
	    f.destructor == DELETED)
		return DW_PASSING_UNKNOWN;
	bool serves = copies || moves || (f.is_implicit && !f.is_complex);
	return serves ? DW_PASSED_BY_VALUE : DW_PASSED_BY_ADDRESS;
}

/* The decision that the compiler wrote down for the class with number @id, if it did. */
static bool is_written(const struct dw_types *r, uint32_t id, struct fates *ret)
{
	struct dw_die class;
	uint64_t off;
	return map_get(&r->unread, id, &off) && dw_die_at(r->dw, off, &class, NULL) == 1 &&
	       read_fates(&class, ret);
}

int dwarf_type_passing(struct dw_types *r, uint32_t id, const struct dw_unit *by,
		       enum dw_passing *ret, struct cairn_err *err)
{
	struct fates written;
	uint32_t class = cairn_types_resolve(r->graph, id);
	bool matters = is_class(cairn_types_get(r->graph, class)) && !dw_unit_is_c(by);
	*ret = matters ? DW_PASSING_UNKNOWN : DW_PASSED_BY_VALUE;
	if (matters && is_written(r, class, &written) &&
	    passing_of(written) == DW_PASSED_BY_ADDRESS) {
		*ret = DW_PASSED_BY_ADDRESS;
		return 0;
	}
	int rc = dwarf_type_complete(r, id, err);
	if (rc < 0 || !matters)
		return rc == -EBADMSG || rc == -ENOTUNIQ ? 0 : rc;
	if (is_written(r, class, &written) || dw_unit_lists_special_members(by))
		*ret = passing_of(fates_of(r, class, 0));
	return 0;
}
