/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drives server.c: a fixed series of requests, again and again
 *
 *	client SOCKET SECONDS		about 200 requests per second
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
static const char *const requests[] = {
	"PUT 3 colour green", "GET colour", "PUT! 7 shape a rather round one", "GET 1 shape",
	"DROP 2 colour", "GET colour", "SING", "PUT taste salt and vinegar",
};
/* clang-format on */

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timespec pause = {.tv_nsec = 5000000};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answer[256];
	time_t end;

	if (argc != 3) {
		fprintf(stderr, "usage: client SOCKET SECONDS\n");
		return 2;
	}
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		perror(argv[1]);
		return 1;
	}
	end = time(NULL) + atoi(argv[2]);
	for (size_t i = 0; time(NULL) < end;
	     i = (i + 1) % (sizeof(requests) / sizeof(requests[0]))) {
		if (dprintf(fd, "%s\n", requests[i]) < 0 || read(fd, answer, sizeof(answer)) <= 0)
			break;
		nanosleep(&pause, NULL);
	}
	close(fd);
	return 0;
}
