/* SPDX-License-Identifier: BSD-2-Clause */
/* A tool of libbpf's: it attaches all programs of an object, until SIGINT.  attach_all OBJECT */
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct bpf_object *object = argc == 2 ? bpf_object__open_file(argv[1], NULL) : NULL;
	struct bpf_program *program;
	sigset_t end;
	int signal;

	sigemptyset(&end);
	sigaddset(&end, SIGINT);
	sigprocmask(SIG_BLOCK, &end, NULL);
	if (!object || bpf_object__load(object))
		return 1;
	bpf_object__for_each_program(program, object)
	{
		if (!bpf_program__attach(program)) {
			fprintf(stderr, "%s: %s\n", bpf_program__name(program), strerror(errno));
			return 1;
		}
	}
	fprintf(stderr, "attached\n");
	sigwait(&end, &signal);
	return 0;
}
