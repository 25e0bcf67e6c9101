/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Much of the C++ library at work, for the comparison with gdb: what it passes by value, by
 * reference and on the stack.
 */
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iomanip>
#include <iostream>
#include <locale>
#include <memory_resource>
#include <random>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

static void numbers(std::ostream &o)
{
	o << 1 << ' ' << -2L << ' ' << 3.25 << ' ' << 1e300L << ' ' << true << ' ' << static_cast<void *>(nullptr) << '\n';
	o << std::hex << std::showbase << 255u << std::setw(12) << std::setfill('*') << std::left << 7 << std::dec << '\n';
	o << std::put_money(12345L) << std::put_time(std::gmtime(new std::time_t(86400)), "%c %x %X") << '\n';
	std::istringstream in("12 -7 3.5 word 0x1f true");
	int a; long b; double c; std::string d; unsigned e; bool f;
	in >> a >> b >> c >> d >> std::hex >> e >> std::boolalpha >> f;
	o << a + b << c << d << e << f << '\n';
	std::wostringstream w;
	w << L"wide " << 42 << std::setprecision(3) << 2.71828 << std::endl;
	o << w.str().size() << '\n';
}

static void strings(std::ostream &o)
{
	std::string s("alpha");
	s.append("beta").insert(2, "xx").replace(1, 2, 3, 'q').erase(0, 1);
	s.reserve(100);
	s += s.substr(2, 5) + std::to_string(99) + std::string(s.rbegin(), s.rend());
	s.resize(40, 'z');
	o << s << s.find("beta") << s.rfind('q') << s.find_first_of("xyz") << s.compare(0, 3, "abc") << std::stoi("17") << std::stod("1.5") << '\n';
	std::wstring w(L"wide");
	w.append(3, L'!').insert(0, L">>").replace(0, 1, L"<<<");
	o << w.size() << w.find(L"de") << std::stol(w.empty() ? L"0" : L"12") << '\n';
	std::pmr::monotonic_buffer_resource pool;
	std::pmr::vector<std::pmr::string> v(&pool);
	for (int i = 0; i < 20; i++)
		v.emplace_back("a string that is longer than fits in place");
	o << v.size() << '\n';
}

static void files(std::ostream &o, const std::string &folder)
{
	namespace fs = std::filesystem;
	fs::path p = fs::path(folder) / "cxx-library" / "deep" / "..";
	fs::create_directories(p / "deep");
	{
		std::ofstream out(p / "file.txt");
		out << "line one\nline two\n" << std::flush;
	}
	std::ifstream in(p / "file.txt");
	for (std::string line; std::getline(in, line);)
		o << line << '\n';
	std::error_code error;
	fs::copy(p / "file.txt", p / "copy.txt", fs::copy_options::overwrite_existing, error);
	fs::rename(p / "copy.txt", p / "moved.txt", error);
	fs::last_write_time(p / "moved.txt", fs::file_time_type::clock::now(), error);
	o << p.lexically_normal().filename() << p.lexically_relative(folder).stem() << fs::exists(p) << fs::file_size(p / "file.txt", error) << '\n';
	for (auto &e : fs::recursive_directory_iterator(fs::path(folder) / "cxx-library", fs::directory_options::skip_permission_denied, error))
		o << e.path().extension() << e.is_regular_file(error) << '\n';
	fs::resize_file(p / "nothing", 3, error);
	o << error.message() << error.category().name() << '\n';
	fs::remove_all(fs::path(folder) / "cxx-library", error);
}

static void failures(std::ostream &o)
{
	try {
		throw std::system_error(std::make_error_code(std::errc::no_space_on_device), "told");
	} catch (const std::exception &e) {
		o << e.what() << '\n';
	}
	try {
		std::string("abc").at(7);
	} catch (const std::out_of_range &e) {
		o << e.what() << '\n';
	}
	try {
		std::future<int> f = std::async(std::launch::deferred, [] { return std::stoi("x"); });
		f.get();
	} catch (const std::invalid_argument &e) {
		o << e.what() << '\n';
	}
}

int main(int argc, char **argv)
{
	std::ostringstream o;
	numbers(o);
	strings(o);
	files(o, argc > 1 ? argv[1] : ".");
	failures(o);
	std::locale there(std::locale::classic(), new std::numpunct_byname<char>("C"));
	o.imbue(there);
	o << 1234567 << std::use_facet<std::ctype<char>>(there).toupper('x') << std::use_facet<std::collate<char>>(there).compare("a", "a" + 1, "b", "b" + 1) << '\n';
	std::random_device entropy("default");
	o << (entropy() != 1) << '\n';
	std::thread t([&o] { o << "thread\n"; });
	t.join();
	std::cout << o.str().size() << std::endl;
	return 0;
}
