/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The price of parcels: the program of docs/tutorial.md, which finds out why it is slow
 *
 *	parcels [RATES] <ORDERS		how many there are and the sum; the rates go to the file RATES
 *
 * An order is a line: ZONE GRAMS ADDRESS. The rate of a zone and a weight is worked out once, and
 * kept. The memory of an order is an arena, which is taken back as a whole after the order.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_BUCKETS = 256, ARENA_BYTES = 1024 };

struct key {
	unsigned char zone;
	unsigned int grams;
};

struct rate {
	struct key key;
	unsigned int cents;
};

struct entry {
	struct entry *next;
	struct rate rate;
};

struct order {
	struct key key;
	const char *address;
};

static char *arena;
static size_t n_taken;
static struct entry *buckets[N_BUCKETS];

static void *take(size_t size)
{
	void *taken = arena + n_taken;

	n_taken += (size + 7) / 8 * 8;
	return taken;
}

static unsigned int bucket_of(const struct key *key)
{
	return (key->zone * 31 + key->grams / 50) % N_BUCKETS;
}

static bool same_key(const struct key *a, const struct key *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static const struct rate *find_rate(const struct key *key)
{
	for (const struct entry *e = buckets[bucket_of(key)]; e; e = e->next)
		if (same_key(&e->rate.key, key))
			return &e->rate;
	return NULL;
}

static const struct rate *add_rate(const struct key *key, unsigned int cents)
{
	struct entry **bucket = &buckets[bucket_of(key)];
	struct entry *e = malloc(sizeof(*e));

	if (!e)
		abort();
	e->rate.key = *key;
	e->rate.cents = cents;
	e->next = *bucket;
	*bucket = e;
	return &e->rate;
}

/* Each 250 grams that are begun cost ten cents for each zone. */
static unsigned int work_out(const struct key *key)
{
	return 290 + (key->grams + 249) / 250 * key->zone * 10;
}

static unsigned int price_of(const struct order *order)
{
	const struct rate *rate = find_rate(&order->key);

	if (!rate)
		rate = add_rate(&order->key, work_out(&order->key));
	return rate->cents;
}

/* The order that a line says, or NULL if it says none. */
static struct order *read_order(const char *line)
{
	char *text = take(strlen(line) + 1), *end;
	struct order *order = take(sizeof(*order));

	strcpy(text, line);
	order->key.zone = (unsigned char)strtoul(text, &end, 10);
	order->key.grams = (unsigned int)strtoul(end, &end, 10);
	order->address = end;
	return *end == ' ' ? order : NULL;
}

static void save_rates(const char *path)
{
	FILE *file = fopen(path, "wb");

	if (!file)
		abort();
	for (int i = 0; i < N_BUCKETS; i++)
		for (const struct entry *e = buckets[i]; e; e = e->next)
			fwrite(&e->rate, sizeof(e->rate), 1, file);
	fclose(file);
}

int main(int argc, char **argv)
{
	unsigned long sum = 0, n_orders = 0;
	char line[256];

	arena = malloc(ARENA_BYTES);
	while (arena && fgets(line, sizeof(line), stdin)) {
		const struct order *order = read_order(line);

		if (order) {
			sum += price_of(order);
			n_orders++;
		}
		n_taken = 0;
	}
	if (argc > 1)
		save_rates(argv[1]);
	printf("%lu parcels, %lu.%02lu\n", n_orders, sum / 100, sum % 100);
	return 0;
}
