/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A folder of batches that no server has taken yet
 *
 * A batch is a file TIME-ID.STATE, the request as it is sent. Its state is in its name, so that a
 * kill -9 leaves one state or the next:
 *
 *	new      nothing of it was sent
 *	sent     it was sent, or nearly, and no answer is known: it may be there already
 *	refused  the server will never take it; kept for people until room is needed
 *
 * A batch that was taken is removed. The file "counts" says what was dropped for lack of room; it
 * names the last one, so that a kill between counting and removing counts it once. It has one size,
 * and is written in place: a full disk does not keep us from counting.
 *
 * A batch that was not taken gets the present time as that of its file: the next ones have their
 * turn first.
 *
 * A lock on the folder is held while something changes there, and never while a batch is sent:
 * whoever adds one does not wait for a server. Another lock lets one process send at a time. A
 * batch that is being sent is locked, too, and is not dropped.
 */
#ifndef CLI_PUSH_SPOOL_H
#define CLI_PUSH_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/err.h>

/* The file of push_pause.h. */
#define SPOOL_PAUSES "pauses"

enum { SPOOL_ID_SIZE = 37, SPOOL_NAME_SIZE = 80 };

enum spool_state {
	SPOOL_NEW,
	SPOOL_SENT,
	SPOOL_REFUSED,
	SPOOL_N_STATES,
};

struct spool {
	char *path;
	int dir;       /* descriptor */
	uint64_t room; /* bytes of all batches */
};

/* Drops since the folder was made. */
struct spool_counts {
	uint64_t n_dropped, bytes_dropped;
};

/* Its bytes are borrowed; url and type have no line ends. */
struct batch {
	char id[SPOOL_ID_SIZE];
	const char *url, *type;
	const void *body;
	size_t size;
	/* For one that was loaded: */
	char *bytes;
	int fd; /* holds its lock */
};

/* A file of the folder. */
struct spool_entry {
	char name[SPOOL_NAME_SIZE];
	enum spool_state state;
	uint64_t size;
	int64_t tried_ns; /* when it was made, or tried last; since 1970 */
};

struct spool_list {
	struct spool_entry *items;
	size_t n;
	uint64_t bytes;
};

/*
 * spool_open - make or open the folder
 *
 * Returns 0; -EPERM: others may write there, or put another folder in its place, so that what is
 * in it could be theirs; or the system's error. spool_close() takes what spool_open() refused, too.
 */
int spool_open(struct spool *s, const char *path, uint64_t room, struct cairn_err *err);
void spool_close(struct spool *s);

/* For changes. Ends what a killed process began to drop. 0, or the system's error. */
int spool_lock(struct spool *s, struct cairn_err *err);
void spool_unlock(struct spool *s);

/* Waits until no other process sends. A descriptor, whose close() lets the next one send. */
int spool_lock_sending(struct spool *s, struct cairn_err *err);

/*
 * spool_add - keep a batch, and drop the oldest ones while there is no room for it
 *
 * Needs the lock. Returns 0; -EFBIG: it alone exceeds the room; -ENOSPC and other errors of
 * writing. It is there completely or not at all.
 */
int spool_add(struct spool *s, const struct batch *b, struct cairn_err *err);

/*
 * The batches that are there, the oldest first. Returns 0, -ENOMEM, or the error of reading the
 * folder.
 */
int spool_read(struct spool *s, struct spool_list *ret, struct cairn_err *err);
void spool_free(struct spool_list *list);

/*
 * spool_load - the batch in a file, with its lock; spool_unload()
 *
 * Returns 0; -ENOENT: another process has removed it; -EBADMSG: it is damaged; or the error.
 */
int spool_load(struct spool *s, const struct spool_entry *e, struct batch *ret,
	       struct cairn_err *err);
void spool_unload(struct batch *b);
/*
 * spool_peek - whom a batch is for, and how large it is, without its body and its lock
 *
 * @ret  url, type, id and size; spool_unload()
 * Errors as spool_load().
 */
int spool_peek(struct spool *s, const struct spool_entry *e, struct batch *ret,
	       struct cairn_err *err);

/* It was not taken: others have their turn before it. */
void spool_put_back(struct spool *s, const struct spool_entry *e);
/* Those that were not tried for the longest time first. */
void spool_order_by_turn(struct spool_list *list);

/* Changes the state, durably. Needs the lock. 0, or the system's error. */
int spool_set_state(struct spool *s, struct spool_entry *e, enum spool_state to,
		    struct cairn_err *err);
/* Forgets a batch that was taken, durably. Needs the lock. */
int spool_remove(struct spool *s, const struct spool_entry *e, struct cairn_err *err);

/* Counts what is dropped without ever having been in the folder. Needs the lock. */
int spool_count_dropped(struct spool *s, uint64_t bytes, struct cairn_err *err);
void spool_counts(struct spool *s, struct spool_counts *ret);

/* Writes a file of the folder, as a whole or not at all; only this user reads it. */
int spool_write(struct spool *s, const char *name, const void *bytes, size_t size,
		struct cairn_err *err);

/* A new id: a random UUID. */
void spool_new_id(char id[SPOOL_ID_SIZE]);

#endif
