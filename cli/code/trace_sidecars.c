/* SPDX-License-Identifier: BSD-2-Clause */
/* Sidecars of the files that a trace probes: those that answer, and those that are to be made. */
#include "sidecar.h"
#include "trace.h"

int trace_find_sidecar(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
		       struct cairn_err *err)
{
	struct session *session = ctx;
	int r = sidecar_find(&session->wish, bin, ret, err);

	if (!r && *ret && session->n_sidecars < KEPT_FILES_MAX) {
		session->sidecar_bins[session->n_sidecars] = bin;
		session->sidecars[session->n_sidecars++] = *ret;
	}
	if (!r && !*ret && cairn_binary_has_dwarf(bin) && session->n_unkept < KEPT_FILES_MAX)
		session->unkept[session->n_unkept++] = bin;
	return r;
}

void trace_keep_sidecars(const struct session *session)
{
	for (size_t i = 0; i < session->n_unkept; i++)
		sidecar_keep(session->unkept[i], &session->wish);
}

void trace_note_trouble(struct session *session)
{
	for (size_t i = 0; i < session->n_sidecars; i++)
		if (sidecar_trouble(session->sidecars[i]) && session->n_unkept < KEPT_FILES_MAX)
			session->unkept[session->n_unkept++] = session->sidecar_bins[i];
}
