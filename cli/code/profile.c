/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

static size_t type_of(const struct cairn_profile *p, const char *value)
{
	size_t n = cairn_profile_n_types(p);

	for (size_t i = 0; value && i < n; i++)
		if (!strcmp(cairn_profile_type(p, i)->type, value))
			return i;
	return value ? n : n - 1;
}

static int no_such_value(const struct cairn_profile *p, const char *path, const char *value)
{
	char list[512] = "";
	size_t n = 0;

	for (size_t i = 0; i < cairn_profile_n_types(p) && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
				      cairn_profile_type(p, i)->type);
	return fail(STATUS_USAGE, "%s has no values \"%s\", but: %s", path, value, list);
}

int profile_open_shares(const char *path, const char *value, struct cairn_profile **ret,
			size_t *ret_type, struct cairn_profile_shares *shares)
{
	struct cairn_err err = {0};
	int r = cairn_profile_open(path, ret, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	*ret_type = type_of(*ret, value);
	if (*ret_type == cairn_profile_n_types(*ret)) {
		r = no_such_value(*ret, path, value);
		cairn_profile_close(*ret);
		return r;
	}
	r = cairn_profile_shares(*ret, *ret_type, shares, &err);
	if (r < 0) {
		cairn_profile_close(*ret);
		return fail_err(r, &err, STATUS_USAGE);
	}
	return STATUS_YES;
}

struct unit {
	const char *name;
	double size;
};

static const struct unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {0}};
static const struct unit sizes[] = {
	{"B", 1}, {"KiB", 1024}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {0}};

static void scaled(const struct unit *units, int64_t value, char to[PROFILE_VALUE_MAX])
{
	const struct unit *u = units;

	while (u[1].name && fabs((double)value) >= u[1].size)
		u++;
	snprintf(to, PROFILE_VALUE_MAX, u == units ? "%.0f %s" : "%.2f %s", (double)value / u->size,
		 u->name);
}

void profile_value_text(const char *unit, int64_t value, char to[PROFILE_VALUE_MAX])
{
	static const struct unit *const kinds[] = {times, sizes};
	static const char *const names[] = {"nanoseconds", "bytes"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(unit, names[i])) {
			scaled(kinds[i], value, to);
			return;
		}
	if (!*unit || !strcmp(unit, "count"))
		snprintf(to, PROFILE_VALUE_MAX, "%" PRId64, value);
	else
		snprintf(to, PROFILE_VALUE_MAX, "%" PRId64 " %.30s", value, unit);
}

double profile_percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

void profile_json_percent(struct json *j, const char *key, double percent)
{
	json_key(j, key);
	fprintf(j->out, "%.2f", percent);
}

bool profile_name_ends(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);

	return n > k && !strcmp(name + n - k, end);
}

const char *profile_code_id(enum cairn_profile_code code)
{
	static const char *const ids[] = {"user", "kernel", "jit"};

	return ids[code];
}
