/* SPDX-License-Identifier: BSD-2-Clause */
/* The body of the request by which a server of profiles takes one. */
#include "export/profile_impl.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "export/otlp.h"
#include "push.pb-c.h"

/* ---- labels ---- */

/* As Prometheus names labels, which both servers demand. */
static bool is_label_name(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	for (const char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '_')
			return false;
	return true;
}

static bool is_attribute_name(const char *name)
{
	for (const char *at = name; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return false;
	return *name && profile_is_utf8(name);
}

static int check_label(enum cairn_profile_server to, const struct cairn_profile_label *l,
		       struct cairn_err *err)
{
	if (to == CAIRN_PROFILE_OTLP && !is_attribute_name(l->key))
		return err_set(err, -EINVAL,
			       "an attribute's name is UTF-8 without control characters: %s",
			       l->key);
	if (to != CAIRN_PROFILE_OTLP && !is_label_name(l->key))
		return err_set(err, -EINVAL, "a label's name has letters, digits and _ only: %s",
			       l->key);
	if (!profile_is_utf8(l->text))
		return err_set(err, -EINVAL, "label %s: the value is not UTF-8", l->key);
	return 0;
}

static const char *name_at(enum cairn_profile_server to, const struct cairn_profile_label *l)
{
	return to == CAIRN_PROFILE_OTLP ? otlp_resource_key(l->key) : l->key;
}

int cairn_profile_check_labels(enum cairn_profile_server to,
			       const struct cairn_profile_label *labels, size_t n,
			       struct cairn_err *err)
{
	for (size_t i = 0; i < n; i++) {
		int rc = check_label(to, &labels[i], err);

		for (size_t k = 0; rc == 0 && k < i; k++)
			if (!strcmp(name_at(to, &labels[i]), name_at(to, &labels[k])))
				rc = err_set(err, -EINVAL, "label %s: given twice", labels[i].key);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- Pyroscope: a message of protocol buffers ---- */

static int pack_pyroscope(CairnPush__LabelPair *pairs, CairnPush__LabelPair **list, size_t n,
			  CairnPush__RawSample *sample, struct cairn_profile_bytes *ret)
{
	CairnPush__RawProfileSeries series = CAIRN_PUSH__RAW_PROFILE_SERIES__INIT, *one = &series;
	CairnPush__PushRequest request = CAIRN_PUSH__PUSH_REQUEST__INIT;

	for (size_t i = 0; i < n; i++)
		list[i] = &pairs[i];
	series.labels = list;
	series.n_labels = n;
	series.samples = &sample;
	series.n_samples = 1;
	request.series = &one;
	request.n_series = 1;
	ret->size = cairn_push__push_request__get_packed_size(&request);
	ret->bytes = malloc(ret->size);
	if (!ret->bytes)
		return -ENOMEM;
	cairn_push__push_request__pack(&request, ret->bytes);
	return 0;
}

static int make_pyroscope(const struct cairn_profile_push *push,
			  const struct cairn_profile_bytes *pprof, struct cairn_profile_bytes *ret)
{
	CairnPush__LabelPair *pairs = calloc(push->n_labels + 1, sizeof(*pairs));
	CairnPush__LabelPair **list = calloc(push->n_labels + 1, sizeof(*list));
	CairnPush__RawSample sample = CAIRN_PUSH__RAW_SAMPLE__INIT;
	int rc = -ENOMEM;

	sample.raw_profile.data = pprof->bytes;
	sample.raw_profile.len = pprof->size;
	sample.id = (char *)push->id;
	if (pairs && list) {
		for (size_t i = 0; i < push->n_labels; i++) {
			cairn_push__label_pair__init(&pairs[i]);
			pairs[i].name = (char *)push->labels[i].key;
			pairs[i].value = (char *)push->labels[i].text;
		}
		rc = pack_pyroscope(pairs, list, push->n_labels, &sample, ret);
	}
	free(pairs);
	free(list);
	return rc;
}

/* ---- Parca: JSON, as its gateway takes WriteRaw ---- */

static void put_base64(FILE *out, const uint8_t *bytes, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		size_t n = size - i < 3 ? size - i : 3;
		uint32_t v = (uint32_t)bytes[i] << 16 | (n > 1 ? bytes[i + 1] : 0u) << 8 |
			     (n > 2 ? bytes[i + 2] : 0u);
		char four[4] = {digits[v >> 18], digits[v >> 12 & 63],
				n > 1 ? digits[v >> 6 & 63] : '=', n > 2 ? digits[v & 63] : '='};

		fwrite(four, 1, sizeof(four), out);
	}
}

static void put_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void put_parca(FILE *out, const struct cairn_profile_push *push,
		      const struct cairn_profile_bytes *pprof)
{
	fputs("{\"series\":[{\"labels\":{\"labels\":[", out);
	for (size_t i = 0; i < push->n_labels; i++) {
		fputs(i ? ",{\"name\":" : "{\"name\":", out);
		put_string(out, push->labels[i].key);
		fputs(",\"value\":", out);
		put_string(out, push->labels[i].text);
		fputc('}', out);
	}
	fputs("]},\"samples\":[{\"rawProfile\":\"", out);
	put_base64(out, pprof->bytes, pprof->size);
	fputs("\"}]}]}", out);
}

static int make_parca(const struct cairn_profile_push *push,
		      const struct cairn_profile_bytes *pprof, struct cairn_profile_bytes *ret)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, &ret->size);
	bool failed = !out;

	if (out) {
		put_parca(out, push, pprof);
		failed = ferror(out) != 0;
		failed |= fclose(out) != 0;
	}
	if (failed) {
		free(text);
		return -ENOMEM;
	}
	ret->bytes = text;
	return 0;
}

/* ---- the function ---- */

static int make_with_pprof(const struct cairn_profile *p, const struct cairn_profile_push *push,
			   struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	struct cairn_profile_bytes pprof;
	int rc = profile_pprof_series(p, &pprof, err);

	if (rc < 0)
		return rc;
	rc = push->to == CAIRN_PROFILE_PARCA ? make_parca(push, &pprof, ret)
					     : make_pyroscope(push, &pprof, ret);
	free(pprof.bytes);
	return rc < 0 ? err_nomem(err, "the request with a profile") : 0;
}

int cairn_profile_push_request(const struct cairn_profile *p, const struct cairn_profile_push *push,
			       struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	int rc = cairn_profile_check_labels(push->to, push->labels, push->n_labels, err);

	*ret = (struct cairn_profile_bytes){0};
	if (rc == 0 && !cairn_profile_n_samples(p))
		rc = err_set(err, -ENODATA, "the profile has no samples");
	if (rc == 0)
		rc = push->to == CAIRN_PROFILE_OTLP ? profile_otlp(p, push, ret, err)
						    : make_with_pprof(p, push, ret, err);
	if (rc < 0)
		*ret = (struct cairn_profile_bytes){0};
	return rc;
}
