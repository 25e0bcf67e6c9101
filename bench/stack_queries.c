/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process to take the stacks of: threads in the middle of nested queries of SQLite
 *
 * Each has a database of its own, and a function that asks the database for itself, one level less,
 * until it waits. A level is five to ten calls through SQLite's largest functions, most of which
 * have others inlined into them.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <sqlite3.h>

static int see_row(void *ctx, int n, char **values, char **names)
{
	return 0;
}

static void deeper(sqlite3_context *ctx, int n, sqlite3_value **values)
{
	char text[128];
	int level = sqlite3_value_int(values[0]);

	if (level <= 0)
		pause();
	snprintf(text, sizeof(text), "select deeper(%d) + count(*) from t", level - 1);
	sqlite3_exec(sqlite3_context_db_handle(ctx), text, see_row, NULL, NULL);
	sqlite3_result_int(ctx, level);
}

static void *thread(void *arg)
{
	sqlite3 *db;
	char text[128];

	if (sqlite3_open(":memory:", &db) != SQLITE_OK)
		abort();
	sqlite3_create_function(db, "deeper", 1, SQLITE_UTF8, NULL, deeper, NULL, NULL);
	snprintf(text, sizeof(text),
		 "create table t(a); insert into t values(1), (2); select deeper(%d) from t",
		 *(int *)arg);
	sqlite3_exec(db, text, see_row, NULL, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	int levels = argc > 1 ? atoi(argv[1]) : 6;
	pthread_t t;

	prctl(PR_SET_PDEATHSIG, 9);
	for (int i = 0; i < 99; i++)
		pthread_create(&t, NULL, thread, &levels);
	puts("ready");
	fflush(stdout);
	thread(&levels);
}
