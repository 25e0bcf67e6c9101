/* SPDX-License-Identifier: BSD-2-Clause */
/* What QEMU translates. */
static volatile unsigned long sum;

__attribute__((noinline)) static unsigned long fib(unsigned int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

int main(void)
{
	for (;;)
		sum += fib(25);
}
