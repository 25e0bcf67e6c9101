/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first program of a guest: BPF_BTF_LOAD of every file in /blobs
 *
 * A line "blob NAME ERRNO" for each, errno 0 where the kernel takes it; "kernel RELEASE" before
 * them and "end" after them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BPF_BTF_LOAD 18

static int load(const char *path)
{
	static char data[16 << 20];
	struct {
		uint64_t btf, log;
		uint32_t size, log_size, level, pad;
	} attributes = {(uintptr_t)data, 0, 0, 0, 0, 0};
	int file = open(path, O_RDONLY);
	ssize_t n = read(file, data, sizeof(data));
	close(file);
	if (n <= 0)
		return EIO;
	attributes.size = (uint32_t)n;
	long fd = syscall(SYS_bpf, BPF_BTF_LOAD, &attributes, sizeof(attributes));
	if (fd < 0)
		return errno;
	close((int)fd);
	return 0;
}

int main(void)
{
	struct utsname system;
	struct dirent *entry;
	DIR *folder;
	if (getpid() != 1)
		return 1; /* it ends with the machine switched off */
	folder = opendir("/blobs");
	uname(&system);
	printf("\nkernel %s\n", system.release);
	while (folder && (entry = readdir(folder))) {
		char path[512];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/blobs/%s", entry->d_name);
		printf("blob %s %d\n", entry->d_name, load(path));
	}
	printf("end\n");
	fflush(stdout);
	sleep(1);
	reboot(RB_POWER_OFF);
	return 0;
}
