/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether sites are those of the code that runs: a blob may be another build's. */
#include <errno.h>

#include "base/err.h"
#include "btfsites/btfsites.h"

/*
 * Some six in ten of another build's sites are in the middle of an instruction. Few of the right
 * one's are: those after a probe of others that was set since the code was read.
 */
enum { SAMPLE = 256, PARTS_WRONG = 10 };

struct sample {
	size_t n, n_wrong;
};

static int check_place(struct btf_sites *s, uint64_t at, struct sample *ret, struct cairn_err *err)
{
	int rc = btfsites_surround(s, (struct cairn_vaddr){at}, err);
	const struct surroundings *a = &s->around;
	if (rc < 0 || !a->code || at < a->from || at >= a->hi)
		return rc;
	ret->n++;
	ret->n_wrong += btfsites_is_off_boundary(s, (struct cairn_vaddr){at});
	return 0;
}

int btfsites_check_sample(struct btf_sites *s, struct cairn_err *err)
{
	struct place_list places = {0};
	struct sample sample = {0};
	int rc = btfsites_all_places(s, &places, err);
	size_t step = places.v.n / SAMPLE + 1;
	for (size_t i = 0; i < places.v.n && rc >= 0; i += step)
		rc = check_place(s, places.v.p[i].at, &sample, err);
	VEC_FREE(&places.v);
	if (rc < 0 || sample.n_wrong * PARTS_WRONG <= sample.n)
		return rc;
	return err_set(err, -ESTALE,
		       "%s: of %zu sites %zu are not at the starts of instructions of %s: it is "
		       "another build's",
		       s->path, sample.n, sample.n_wrong, cairn_binary_path(s->sites.bin));
}
