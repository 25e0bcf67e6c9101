/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fmt, whose headers are compiled with the program: views, tagged unions and buffers that are
 * passed by value.
 */
#define FMT_HEADER_ONLY
#include <fmt/args.h>
#include <fmt/chrono.h>
#include <fmt/color.h>
#include <fmt/compile.h>
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/printf.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

int main()
{
	std::string all;
	for (int i = 0; i < 8; i++) {
		all += fmt::format("{:>{}} {:08.3f} {:#x} {:+d} {:s} {}\n", i, i + 3, i * 1.7, i * 977, -i, "text", 'c');
		all += fmt::format("{0:*^20} {1:e} {1:g} {2} {3:p}\n", "middle", i * 1e17, true, static_cast<void *>(nullptr));
		all += fmt::format(FMT_COMPILE("{} {}\n"), i, std::string(i, 'x'));
		all += fmt::sprintf("%05d %-8s|%7.2f|%c|%lx\n", i, "ab", i / 3.0, 'q', 99L * i);
	}
	all += fmt::format("{}\n", fmt::join(std::vector<int>{1, 2, 3}, ", "));
	all += fmt::format("{} {}\n", std::map<std::string, int>{{"a", 1}, {"b", 2}}, std::vector<std::string>{"x", "y"});
	all += fmt::format(fmt::fg(fmt::color::red) | fmt::emphasis::bold, "red {}\n", 5);
	all += fmt::format("{:%Y-%m-%d %H:%M:%S}\n", fmt::gmtime(std::time_t(86400)));
	fmt::dynamic_format_arg_store<fmt::format_context> store;
	store.push_back(42);
	store.push_back("late");
	store.push_back(1.5f);
	all += fmt::vformat("{} {} {}\n", store);
	try {
		all += fmt::format(fmt::runtime("{:d}"), "no number");
	} catch (const fmt::format_error &e) {
		all += e.what();
	}
	fmt::memory_buffer buffer;
	fmt::format_to(std::back_inserter(buffer), "{:.{}} {:L}", 3.14159265358979, 12, 1234567);
	fmt::print("{} {}\n", all.size(), buffer.size());
	return 0;
}
