/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LLVM's small classes: StringRef, ArrayRef, Twine, APInt, Optional, Expected and iterators, by
 * value and by reference.
 */
#include <llvm/ADT/APFloat.h>
#include <llvm/ADT/APInt.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/BitVector.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/Optional.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/ADT/Triple.h>
#include <llvm/ADT/Twine.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>

using namespace llvm;

struct Pair { int64_t a; double b; };
struct Owner { Owner(int n) : n(n) {} Owner(const Owner &o) : n(o.n + 1) {} ~Owner() { n = 0; } int n; };

static __attribute__((noinline)) unsigned words(StringRef text, char by, Optional<unsigned> limit, SmallVectorImpl<StringRef> &to)
{
	text.split(to, by, limit ? *limit : -1, false);
	return to.size();
}

static __attribute__((noinline)) APInt power(APInt base, unsigned exponent, Owner by_copy, ArrayRef<int> more)
{
	APInt result(base.getBitWidth(), by_copy.n ? 1 : 0);
	for (unsigned i = 0; i < exponent; i++)
		result *= base;
	for (int m : more)
		result += m;
	return result;
}

static __attribute__((noinline)) Expected<Pair> parse(StringRef text, Twine where, Pair otherwise, std::pair<int, float> weight)
{
	int64_t n;
	if (text.getAsInteger(0, n))
		return createStringError(inconvertibleErrorCode(), "no number " + where.str());
	return Pair{n + weight.first, otherwise.b * weight.second};
}

static __attribute__((noinline)) std::string join_all(iterator_range<const StringRef *> range, StringRef by, bool upper, APFloat scale)
{
	std::string s = join(range.begin(), range.end(), by);
	SmallString<16> text;
	scale.toString(text);
	return (upper ? StringRef(s).upper() : s) + text.str().str();
}

int main()
{
	std::string buffer;
	raw_string_ostream out(buffer);
	StringMap<unsigned> counts;
	DenseMap<uint64_t, Pair> pairs;
	SmallSet<int, 4> set;
	for (unsigned round = 0; round < 6; round++) {
		SmallVector<StringRef, 4> found;
		out << words("the quick brown fox jumps", ' ', round & 1 ? Optional<unsigned>(round) : None, found) << ' ';
		for (StringRef w : found)
			counts[w]++;
		SmallString<40> digits;
		power(APInt(64 * (1 + round % 3), 7 + round), round + 2, Owner(round), {1, 2, static_cast<int>(round)}).toString(digits, 10, false);
		out << digits << format_hex(round * 31, 8) << '\n';
		for (const char *text : {"12", "0x1f", "many"}) {
			Expected<Pair> p = parse(text, "in " + Twine(round), {3, 0.5}, {static_cast<int>(round), 2.0f});
			if (p)
				pairs[p->a] = *p;
			else
				out << toString(p.takeError()) << '\n';
		}
		out << join_all({found.begin(), found.end()}, ", ", round > 3, APFloat(1.25 * round)) << '\n';
		set.insert(round % 5);
	}
	Triple triple("x86_64-pc-linux-gnu");
	SmallString<64> path("/usr/lib");
	sys::path::append(path, "x", "..", "y.so");
	sys::path::remove_dots(path, true);
	BitVector bits(77);
	bits.set(3, 40).flip(7);
	out << triple.getArchName() << triple.getOSName() << sys::path::filename(path) << bits.count() << pairs.size() << set.size();
	outs() << out.str().size() << '\n';
	return 0;
}
