// Short texts in place, and the strict reading of numbers.
#include <ibvxx/text.hpp>
#include <string>

#include "catch.hpp"

namespace ibvxx::text_test {

using detail::number_syntax;

namespace {

number_syntax read(std::string_view text, std::uint32_t limit, bool hexadecimal = true) {
  std::uint32_t value = 77;
  const auto answer = ibvxx::detail::read_number(text, limit, hexadecimal, value);
  if (answer != number_syntax::good) CHECK(value == 77);
  return answer;
}

}  // namespace

TEST_CASE("a fixed text appends, cuts what does not fit and stays ended by a zero", "[text]") {
  fixed_text<8> text;
  CHECK(text.empty());
  text.append("abc").print("%d", 42);
  CHECK(text.view() == "abc42");
  text.print("%s", "123456789");
  CHECK(text.view() == "abc42123");
  CHECK(std::string(text.c_str()) == "abc42123");
  text.print("more").append("more");
  CHECK(text.size() == 8);
  CHECK(text == fixed_text<8>("abc42123999"));
  static_assert(fixed_text<4>("abcdef").view() == "abcd");
}

TEST_CASE("numbers are decimal or hexadecimal after 0x, and nothing else", "[text]") {
  std::uint32_t value = 0;
  CHECK(ibvxx::detail::read_number("0", 10, true, value) == number_syntax::good);
  CHECK(value == 0);
  CHECK(ibvxx::detail::read_number("16777215", 0xffffff, true, value) == number_syntax::good);
  CHECK(value == 0xffffff);
  CHECK(ibvxx::detail::read_number("0x00fFfF", 0xffff, true, value) == number_syntax::good);
  CHECK(value == 0xffff);
  for (const char* bad : {"", "0x", "x1", "0X1", "1x", "+1", "-1", " 1", "1 ", "01", "00", "1.0",
                          "1e3", "0xg", "f", "0b1", "1_000", "0x-1", "٣"})
    CHECK(read(bad, 0xffffff) == number_syntax::malformed);
  CHECK(read("0x10", 100, false) == number_syntax::malformed);
  CHECK(read(std::string_view("1\0", 2), 100) == number_syntax::malformed);
}

TEST_CASE("a number above the limit and text that is no number are different errors, at any length",
          "[text]") {
  CHECK(read("16777216", 0xffffff) == number_syntax::too_large);
  CHECK(read("4294967296", 0xffffffff) == number_syntax::too_large);
  CHECK(read("4294967295", 0xffffffff) == number_syntax::good);
  CHECK(read("18446744073709551617", 0xffffff) == number_syntax::too_large);
  CHECK(read("0x1000000000000000000000001", 0xffffff) == number_syntax::too_large);
  CHECK(read("99999999999999999999999z", 0xffffff) == number_syntax::malformed);
}

TEST_CASE("foreign text is quoted, shortened, and without control characters", "[text]") {
  CHECK(ibvxx::detail::quotable("mlx5_0").view() == "mlx5_0");
  CHECK(ibvxx::detail::quotable("a\nb\x1b[31m").view() == "a?b?[31m");
  CHECK(ibvxx::detail::quotable(std::string(50, 'x')).view() == std::string(20, 'x') + "...");
}

}  // namespace ibvxx::text_test
