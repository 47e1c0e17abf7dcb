// Short texts that allocate nothing, and a strict parser for numbers.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace ibvxx {

/// A text of at most `Capacity` characters, stored in place with a terminating zero. A longer text
/// is cut. Trivially copyable.
template <std::size_t Capacity>
class fixed_text {
 public:
  constexpr fixed_text() noexcept = default;
  constexpr explicit fixed_text(std::string_view text) noexcept { append(text); }

  [[nodiscard]] constexpr std::string_view view() const noexcept { return {text_, size_}; }
  [[nodiscard]] constexpr const char* c_str() const noexcept { return text_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] constexpr operator std::string_view() const noexcept { return view(); }

  constexpr fixed_text& append(std::string_view text) noexcept {
    for (const char c : text) {
      if (size_ == Capacity) break;
      text_[size_++] = c;
    }
    text_[size_] = '\0';
    return *this;
  }

  /// Appends, with a printf format.
  [[gnu::format(printf, 2, 3)]] fixed_text& print(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    const int wanted = std::vsnprintf(text_ + size_, Capacity + 1 - size_, format, arguments);
    va_end(arguments);
    if (wanted > 0) {
      const std::size_t room = Capacity - size_;
      const auto length = static_cast<std::size_t>(wanted);
      size_ += length < room ? length : room;
    }
    return *this;
  }

  friend constexpr bool operator==(const fixed_text& a, const fixed_text& b) noexcept {
    return a.view() == b.view();
  }

 private:
  std::size_t size_ = 0;
  char text_[Capacity + 1] = {};
};

namespace detail {

/// Quotes a text from outside in a message: its first characters, without control characters.
[[nodiscard]] constexpr fixed_text<24> quotable(std::string_view text) noexcept {
  fixed_text<24> quoted;
  constexpr std::size_t shown = 20;
  for (const char c : text.substr(0, shown)) {
    const char harmless = c >= ' ' && c <= '~' ? c : '?';
    quoted.append({&harmless, 1});
  }
  if (text.size() > shown) quoted.append("...");
  return quoted;
}

enum class number_syntax : std::uint8_t { good, malformed, too_large };

/// Parses an unsigned number that is the whole text: decimal without leading zeros or, if
/// `hexadecimal` allows it, hexadecimal after "0x". No sign, no space, no other base. `value` is
/// set only if the result is `good`; `limit` is at most 2^32 - 1.
[[nodiscard]] constexpr number_syntax read_number(std::string_view text, std::uint32_t limit,
                                                  bool hexadecimal, std::uint32_t& value) noexcept {
  std::uint32_t base = 10;
  if (hexadecimal && text.substr(0, 2) == "0x") {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.front() == '0') {
    return number_syntax::malformed;  // 017 is 15 for some parsers and 17 for others
  }
  if (text.empty()) return number_syntax::malformed;
  std::uint64_t sum = 0;
  bool above = false;
  for (const char c : text) {
    std::uint32_t digit = base;
    if (c >= '0' && c <= '9') digit = static_cast<std::uint32_t>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<std::uint32_t>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') digit = static_cast<std::uint32_t>(c - 'A') + 10;
    if (digit >= base) return number_syntax::malformed;
    if (!above) sum = sum * base + digit;
    above = above || sum > limit;  // a malformed number is not reported as too large
  }
  if (above) return number_syntax::too_large;
  value = static_cast<std::uint32_t>(sum);
  return number_syntax::good;
}

}  // namespace detail

}  // namespace ibvxx
