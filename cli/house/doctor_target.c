/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library that `cairn doctor` probes, in this process
 *
 * A program from a package is stripped, and its own functions have no debug information. This
 * library has, and travels inside the program as bytes (doctor_trace.c).
 */
#include "doctor.h"

/* Its argument is in a register, and the compiler cannot remove what it does. */
void cairn_doctor_target(int number)
{
	__asm__ volatile("" : : "r"(number) : "memory");
}
