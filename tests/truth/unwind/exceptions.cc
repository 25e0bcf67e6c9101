// SPDX-License-Identifier: BSD-2-Clause
// A program whose stack is left in every way: returns, exceptions through many frames, longjmp, signal handlers on their own
// stack, callbacks of the C library, calls through a lazily bound procedure linkage table. 2,200 functions take part.
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <vector>

static volatile unsigned sink;
static volatile sig_atomic_t ticks;
static jmp_buf out;

struct guard {
	unsigned n;
	~guard() { sink += n; }
};

template <unsigned N> __attribute__((noinline)) unsigned leave(unsigned how)
{
	guard g{N};
	if constexpr (N % 5 == 0) {
		// A frame of a size that the compiler does not know.
		char *room = static_cast<char *>(alloca(how % 100 + 1));
		std::memset(room, static_cast<int>(how), how % 100 + 1);
		sink += static_cast<unsigned char>(room[0]);
	}
	if constexpr (N % 7 == 0) {
		alignas(64) volatile char aligned[64] = {};
		aligned[0] = static_cast<char>(how);
		sink += static_cast<unsigned>(aligned[0]);
	}
	if constexpr (N % 12 == 0) {
		if (how % 2000 == 1)
			throw std::runtime_error(std::string(how % 40, 'x'));
		if (how % 100 == 2)
			longjmp(out, 1);
		return how;
	} else {
		try {
			return leave<N - 1>(how) + N;
		} catch (const std::runtime_error &e) {
			if (N % 3)
				throw;
			sink += static_cast<unsigned>(std::strlen(e.what()));
			return N;
		}
	}
}

template <unsigned N> struct table {
	static void fill(std::vector<unsigned (*)(unsigned)> &to)
	{
		to.push_back(&leave<N>);
		table<N - 1>::fill(to);
	}
};
template <> struct table<0> {
	static void fill(std::vector<unsigned (*)(unsigned)> &to) { to.push_back(&leave<0>); }
};

static int order(const void *a, const void *b)
{
	sink += leave<3>(0);
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static void on_tick(int)
{
	ticks = ticks + 1;
	sink += leave<6>(3);
}

int main()
{
	static char other[1 << 16];
	stack_t stack = {};
	stack.ss_sp = other;
	stack.ss_size = sizeof(other);
	sigaltstack(&stack, nullptr);
	struct sigaction action = {};
	action.sa_handler = on_tick;
	action.sa_flags = SA_ONSTACK | SA_RESTART;
	sigaction(SIGVTALRM, &action, nullptr);
	// Of its own time: the machine may be busy, and each instruction a stop.
	itimerval every = {{0, 20000}, {0, 20000}};
	setitimer(ITIMER_VIRTUAL, &every, nullptr);
	std::vector<unsigned (*)(unsigned)> all;
	table<2200>::fill(all);
	for (unsigned i = 0;; i++) {
		int numbers[20];
		for (int k = 0; k < 20; k++)
			numbers[k] = static_cast<int>((i * 7919u + static_cast<unsigned>(k) * 104729u) % 1000u);
		if (i % 64 == 0)
			qsort(numbers, 20, sizeof(numbers[0]), order);
		if (setjmp(out) == 0) {
			try {
				sink += all[i * 31 % all.size()](i);
			} catch (const std::runtime_error &) {
				sink++;
			}
		}
	}
}
