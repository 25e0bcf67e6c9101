/* SPDX-License-Identifier: BSD-2-Clause */
/* Pushing profiles to a server, by way of a spool that outlives the process. */
#ifndef CLI_PUSH_H
#define CLI_PUSH_H

#include <cairn/profile.h>

#include "cmd.h"
#include "push_spool.h"

/* The options, as they were given. */
struct push_wish {
	const char *url;
	struct opt_list labels, headers;
	const char *as, *ca, *spool;
	bool otlp;
	unsigned long spool_mib;
	double timeout;
};

/* Options of a struct push_wish that is member @wish of the verb's struct. */
#define PUSH_OPTS(type, wish)                                                                      \
	{0,                                                                                        \
	 "as",                                                                                     \
	 OPT_TEXT,                                                                                 \
	 "pyroscope|parca",                                                                        \
	 offsetof(type, wish.as),                                                                  \
	 "what the server is, unless the URL's path says so (pyroscope)"},                         \
		{0,                                                                                \
		 "otlp",                                                                           \
		 OPT_FLAG,                                                                         \
		 NULL,                                                                             \
		 offsetof(type, wish.otlp),                                                        \
		 "push to a collector of OpenTelemetry, by OTLP's profiles, version "              \
		 "v1development"},                                                                 \
		{0,                                                                                \
		 "label",                                                                          \
		 OPT_LIST,                                                                         \
		 "NAME=VALUE",                                                                     \
		 offsetof(type, wish.labels),                                                      \
		 "push the profile with this label, such as service_name=shop; may be repeated"},  \
		{0,                                                                                \
		 "header",                                                                         \
		 OPT_LIST,                                                                         \
		 "LINE",                                                                           \
		 offsetof(type, wish.headers),                                                     \
		 "send this line of the request's head, or with @FILE those of FILE, which other " \
		 "users do not see; may be repeated"},                                             \
		{0,                                                                                \
		 "ca",                                                                             \
		 OPT_TEXT,                                                                         \
		 "FILE",                                                                           \
		 offsetof(type, wish.ca),                                                          \
		 "trust the certificates in FILE instead of the system's"},                        \
		{0,                                                                                \
		 "spool",                                                                          \
		 OPT_TEXT,                                                                         \
		 "DIR",                                                                            \
		 offsetof(type, wish.spool),                                                       \
		 "keep what the server has not taken in DIR ($XDG_STATE_HOME/cairn/push)"},        \
		{0,                                                                                \
		 "spool-size",                                                                     \
		 OPT_COUNT,                                                                        \
		 "MIB",                                                                            \
		 offsetof(type, wish.spool_mib),                                                   \
		 "drop the oldest batches beyond MIB there (256)"},                                \
	{                                                                                          \
		0, "timeout", OPT_SECONDS, "TIME", offsetof(type, wish.timeout),                   \
			"wait so long for the answer to a batch (30)"                              \
	}

/* The work of one process. */
struct push_counts {
	uint64_t n_sent, bytes_sent, n_twice, n_refused;
	uint64_t n_rejected;               /* profiles in what was sent, by the server's word */
	uint64_t n_unsure;                 /* that wait, and may have arrived already */
	uint64_t n_waiting, bytes_waiting; /* in the spool, for this server */
	uint64_t n_others;                 /* for other servers */
	uint64_t n_lost;                   /* neither sent nor kept */
	struct spool_counts dropped;       /* since the spool was made */
};

struct push {
	const struct push_wish *wish;
	enum cairn_profile_server to;
	char *url;        /* of the service */
	const char *type; /* of its requests; static */
	struct opt_list headers;
	char *header_text;                  /* of files */
	struct cairn_profile_label *labels; /* as the options say */
	struct spool spool;
	struct push_counts counts;
	char *failure; /* why the last batch was not taken; NULL */
	bool json, quiet;
};

/*
 * push_open - check what the options say, and open the spool
 *
 * Returns STATUS_YES; or another status, after a message. push_close() in each case.
 */
int push_open(const struct push_wish *wish, struct push *ret);
void push_close(struct push *p);

/*
 * push_add - put a profile into the spool, to be sent
 *
 * @name  of the profile, for messages
 * @node  the host's name, as label "node"; NULL: none
 * If the spool cannot be written, it is sent at once instead. Returns an exit status, after a
 * message unless it is STATUS_YES. STATUS_NO: no samples.
 */
int push_add(struct push *p, struct cairn_profile *profile, const char *name, const char *node);

/*
 * push_send - send what waits for this server, what was not tried for the longest time first
 *
 * Ends when the server is not there or not ready, and after three batches in turn that it, or a
 * proxy before it, cannot cope with. Nothing is sent while it asked to be left alone. Returns
 * STATUS_YES: all was taken; STATUS_NO: the server refused or rejected some; STATUS_NOT_HERE: some
 * wait.
 */
int push_send(struct push *p);

/* Tells what was done: a line for people, or the summary in JSON. */
void push_report(const struct push *p, FILE *out);

#endif
