// The description of a failed call: the verb, the errno, the device, and the relevant arguments.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ibvxx/verb.hpp>
#include <string>
#include <string_view>
#include <type_traits>

namespace ibvxx {

/// The symbolic name of an errno value ("EINVAL"), or nullptr if the C library does not know it.
[[nodiscard]] inline const char* errno_name(int code) noexcept {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 32))
  return ::strerrorname_np(code);
#else
  static_cast<void>(code);
  return nullptr;
#endif
}

/// The English description of an errno value ("Invalid argument"). Static storage.
[[nodiscard]] inline const char* errno_description(int code) noexcept {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 32))
  const char* known = ::strerrordesc_np(code);  // unlike strerror: thread-safe and never translated
#else
  const char* known = std::strerror(code);
#endif
  return known ? known : "Unknown error";
}

/// A failure, as a value: trivially copyable, 128 bytes, built without allocating. It holds copies
/// only, so it may outlive the objects that it describes. Any number of threads may read it.
class error {
 public:
  /// `code` is an errno of either sign, since some providers return it negated. 0, from a call that
  /// failed without an errno, becomes EIO and `unspecified()`.
  error(verb call, int code) noexcept
      : code_(code == 0 ? EIO : (code < 0 ? -code : code)), verb_(call), unspecified_(code == 0) {}

  /// The verb that failed.
  [[nodiscard]] verb call() const noexcept { return verb_; }
  /// The errno, always positive.
  [[nodiscard]] int code() const noexcept { return code_; }
  /// True if the call failed without an errno; `code()` is then EIO.
  [[nodiscard]] bool unspecified() const noexcept { return unspecified_; }
  /// The name of the device; empty if there was none yet.
  [[nodiscard]] std::string_view device() const noexcept { return {text_, device_length_}; }
  /// The relevant arguments and limits; may be empty. A text that is too long is cut and ends in
  /// "...".
  [[nodiscard]] std::string_view detail() const noexcept { return {text_ + device_length_ + 1}; }

  /// Sets the name of the device; the detail is unchanged.
  error& on(const char* device_name) noexcept {
    // The limit leaves most of the space to the detail; kernel device names are rarely longer than
    // ten characters.
    const std::size_t length = device_name ? ::strnlen(device_name, max_device_name) : 0;
    char* const from = text_ + device_length_ + 1;
    char* const to = text_ + length + 1;
    const auto room = static_cast<std::size_t>(text_ + sizeof text_ - 1 - to);
    const std::size_t kept = detail().size() < room ? detail().size() : room;
    std::memmove(to, from, kept);
    to[kept] = '\0';
    if (length != 0) std::memcpy(text_, device_name, length);
    text_[length] = '\0';
    device_length_ = static_cast<std::uint8_t>(length);
    return *this;
  }
  error& on(const ibv_context* context) noexcept {
    return on(context && context->device ? context->device->name : nullptr);
  }

  /// Appends to the detail, with a printf format.
  [[gnu::format(printf, 2, 3)]] error& explain(const char* format, ...) noexcept {
    const std::size_t begin = device_length_ + std::size_t{1} + detail().size();
    std::va_list arguments;
    va_start(arguments, format);
    const int wanted = std::vsnprintf(text_ + begin, sizeof text_ - begin, format, arguments);
    va_end(arguments);
    if (wanted >= 0 && begin + static_cast<std::size_t>(wanted) >= sizeof text_)
      std::memcpy(text_ + sizeof text_ - sizeof "...", "...", sizeof "...");
    return *this;
  }

  /// The whole message in one line, for example `ibv_create_cq on mlx5_0: Invalid argument
  /// (EINVAL): cqe 70000 is above the device's limit of 65535`.
  [[nodiscard]] std::string message() const {
    char line[max_message];
    return {line, message_to(line, sizeof line)};
  }

  /// Writes the same line, cut to `size - 1` characters and a terminating zero, and returns its
  /// length. Allocates nothing.
  std::size_t message_to(char* buffer, std::size_t size) const noexcept {
    if (size == 0) return 0;
    std::size_t length = 0;
    const auto append = [&](const char* text) noexcept {
      while (*text != '\0' && length + 1 < size) buffer[length++] = *text++;
    };
    append(name(verb_));
    if (device_length_ != 0) append(" on "), append(text_);
    append(": ");
    if (unspecified_) {
      append("unspecified error (the call failed and left errno at 0)");
    } else {
      append(errno_description(code_));
      append(" (");
      if (const char* known = errno_name(code_)) {
        append(known);
      } else {
        char number[24];
        std::snprintf(number, sizeof number, "errno %d", code_);
        append(number);
      }
      append(")");
    }
    if (!detail().empty()) append(": "), append(detail().data());
    buffer[length] = '\0';
    return length;
  }

  /// A buffer size that is enough for any message.
  static constexpr std::size_t max_message = 384;

  friend bool operator==(const error& a, const error& b) noexcept {
    return a.code_ == b.code_ && a.verb_ == b.verb_ && a.unspecified_ == b.unspecified_ &&
           a.device() == b.device() && a.detail() == b.detail();
  }

 private:
  static constexpr std::size_t max_device_name = 32;

  int code_;
  verb verb_;
  bool unspecified_;
  std::uint8_t device_length_ = 0;
  char text_[121] = {};  // the device's name, a zero, the detail, a zero
};

static_assert(std::is_trivially_copyable_v<error> && sizeof(error) <= 128);

}  // namespace ibvxx
