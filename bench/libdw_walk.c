/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libdw_walk FILE tags|attributes: what encode.py holds beside ours for large programs
 *
 * Steps over every DIE by child and sibling links, the way any program on libdw does, and reads its
 * tag, or each of its attributes. One thread: libdw is not safe for more before elfutils 0.192.
 */
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Deeper than any compiler nests; a deeper file ends the program with a message. */
enum { DEPTH_MAX = 4096 };

struct counts {
	uint64_t dies, inlined, attributes;
};

static int count_attribute(Dwarf_Attribute *attribute, void *arg)
{
	++*(uint64_t *)arg;
	return DWARF_CB_OK;
}

static void see(Dwarf_Die *die, bool attributes, struct counts *c)
{
	c->dies++;
	c->inlined += dwarf_tag(die) == 0x1d;
	if (attributes)
		dwarf_getattrs(die, count_attribute, &c->attributes, 0);
}

static int walk_unit(Dwarf_Die *root, bool attributes, struct counts *c)
{
	static Dwarf_Die open[DEPTH_MAX];
	int depth = 0;
	open[0] = *root;
	see(root, attributes, c);
	while (depth >= 0) {
		if (depth + 1 == DEPTH_MAX)
			return -1;
		int rc = dwarf_child(&open[depth], &open[depth + 1]);
		if (rc == 0)
			depth++;
		while (rc > 0 && depth >= 0) {
			rc = dwarf_siblingof(&open[depth], &open[depth]);
			depth -= rc > 0;
		}
		if (rc < 0)
			return -1;
		if (depth >= 0)
			see(&open[depth], attributes, c);
	}
	return 0;
}

static int walk(Dwarf *dw, bool attributes, struct counts *c)
{
	Dwarf_Off off = 0, next;
	size_t header;
	for (; dwarf_nextcu(dw, off, &next, &header, NULL, NULL, NULL) == 0; off = next) {
		Dwarf_Die root;
		if (!dwarf_offdie(dw, off + header, &root) || walk_unit(&root, attributes, c) < 0)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct counts c = {0};
	int fd = argc == 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	Dwarf *dw = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
	if (!dw || walk(dw, !strcmp(argv[2], "attributes"), &c) < 0) {
		fprintf(stderr, "libdw_walk: %s\n",
			dw ? dwarf_errmsg(-1) : "usage: libdw_walk FILE tags|attributes");
		return 4;
	}
	printf("%" PRIu64 " DIEs, %" PRIu64 " inlined copies, %" PRIu64 " attributes\n", c.dies,
	       c.inlined, c.attributes);
	dwarf_end(dw);
	close(fd);
	return 0;
}
