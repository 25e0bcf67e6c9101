/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work for a kernel: files, pipes, sockets, processes, timers, memory, a block device
 *
 *	kernel_work ROUNDS [BLOCK-DEVICE]
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char block[16384];

static void files(int round)
{
	char name[64], other[64];
	snprintf(name, sizeof(name), "/tmp/work-%d", round);
	snprintf(other, sizeof(other), "/tmp/work-%d-renamed", round);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (write(fd, block, 100 * (round + 1)) < 0 || pwrite(fd, block, 5000, 8192) < 0)
		exit(1);
	lseek(fd, 0, SEEK_SET);
	if (read(fd, block, sizeof(block)) < 0)
		exit(1);
	struct stat st;
	fstat(fd, &st);
	fsync(fd);
	if (ftruncate(fd, 10))
		exit(1);
	close(fd);
	rename(name, other);
	stat(other, &st);
	access(name, F_OK);
	unlink(other);
	mkdir(name, 0700);
	rmdir(name);
}

static void pipes(void)
{
	int ends[2];
	if (pipe(ends) || write(ends[1], block, 4000) != 4000 || read(ends[0], block, 4000) != 4000)
		exit(1);
	close(ends[0]);
	close(ends[1]);
}

static void local_sockets(void)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		exit(1);
	if (send(ends[0], block, 300, 0) != 300 || recv(ends[1], block, 300, 0) != 300)
		exit(1);
	close(ends[0]);
	close(ends[1]);
}

static struct sockaddr_in loopback(int fd)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
	    getsockname(fd, (struct sockaddr *)&at, &n))
		exit(1);
	return at;
}

static void datagrams(void)
{
	int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in at = loopback(in);
	for (int i = 0; i < 3; i++) {
		sendto(out, block, 100, 0, (struct sockaddr *)&at, sizeof(at));
		recv(in, block, sizeof(block), 0);
	}
	close(in);
	close(out);
}

static void streams(void)
{
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = loopback(server);
	listen(server, 1);
	connect(client, (struct sockaddr *)&at, sizeof(at));
	int peer = accept(server, NULL, NULL);
	for (int i = 0; i < 3; i++) {
		send(client, block, 700, 0);
		recv(peer, block, 700, MSG_WAITALL);
		send(peer, block, 50, 0);
		recv(client, block, 50, MSG_WAITALL);
	}
	close(client);
	close(peer);
	close(server);
}

static void processes(const char *self)
{
	pid_t child = fork();
	if (!child) {
		execl(self, self, "0", (char *)NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
}

static void timers(void)
{
	struct timespec pause = {.tv_nsec = 2000000};
	struct itimerspec in = {.it_value = pause};
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), event = eventfd(1, 0);
	int set = epoll_create1(0);
	struct epoll_event wanted = {.events = EPOLLIN};
	nanosleep(&pause, NULL);
	timerfd_settime(timer, 0, &in, NULL);
	epoll_ctl(set, EPOLL_CTL_ADD, timer, &wanted);
	epoll_wait(set, &wanted, 1, 1000);
	struct pollfd ready = {.fd = event, .events = POLLIN};
	poll(&ready, 1, 1000);
	close(timer);
	close(event);
	close(set);
}

static void memory(void)
{
	char *at = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 65536; i += 4096)
		at[i] = 1;
	mprotect(at, 8192, PROT_READ);
	madvise(at + 16384, 16384, MADV_DONTNEED);
	munmap(at, 65536);
}

static void device(const char *path)
{
	int fd = open(path, O_RDWR);
	if (fd < 0)
		return;
	if (pwrite(fd, block, sizeof(block), 32768) < 0 || pread(fd, block, 4096, 65536) < 0)
		exit(1);
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (pread(fd, block, 4096, 0) < 0)
		exit(1);
	close(fd);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	for (int i = 0; i < rounds; i++) {
		files(i);
		pipes();
		local_sockets();
		datagrams();
		streams();
		processes(argv[0]);
		timers();
		memory();
		if (argc > 2)
			device(argv[2]);
	}
	return 0;
}
