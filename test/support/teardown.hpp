// Catches what destructors hand to the teardown handler.
#pragma once

#include <array>
#include <cstddef>
#include <ibvxx/teardown.hpp>
#include <optional>

namespace ibvxx::test {

/// While it lives, teardown failures are kept here instead of being written to standard error.
class teardown_catcher {
 public:
  teardown_catcher() : before_(set_teardown_handler(&keep)) { count_ = 0; }
  teardown_catcher(const teardown_catcher&) = delete;
  teardown_catcher& operator=(const teardown_catcher&) = delete;
  ~teardown_catcher() { set_teardown_handler(before_); }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const error& operator[](std::size_t i) const { return kept_.at(i).value(); }

 private:
  static void keep(const error& e) noexcept {
    if (count_ < kept_.size()) kept_[count_].emplace(e);
    ++count_;
  }

  teardown_handler before_;
  static inline std::size_t count_ = 0;
  static inline std::array<std::optional<error>, 16>
      kept_;  // no allocation: it may be called while allocations fail
};

}  // namespace ibvxx::test
