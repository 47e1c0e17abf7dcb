// Rules about calls (ibvxx/shim/fault.hpp).
#include <cstdint>
#include <ibvxx/shim/fault.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "core/engine.hpp"
#include "core/verb_table.hpp"
#include "device/data_path/send_queue.hpp"
#include "device/machine.hpp"

namespace ibvxx::shim {

fault fault::nth(std::uint64_t n) const {
  if (n == 0) throw std::logic_error("shim: fault.nth(0): calls count from 1");
  if (index_ != 0) throw std::logic_error("shim: at_call() is about one call: it has no nth()");
  fault next = *this;
  next.nth_ = n;
  return next;
}

fault fault::times(std::uint64_t count) const {
  if (count == 0) throw std::logic_error("shim: fault.times(0) would inject nothing");
  if (index_ != 0) throw std::logic_error("shim: at_call() is about one call: it happens once");
  fault next = *this;
  next.times_ = count;
  return next;
}

fault fault::persistently() const {
  return times(UINT64_MAX);
}

fault fault::on(const void* object) const {
  if (!object) throw std::logic_error("shim: fault.on(nullptr) would match nothing");
  fault next = *this;
  next.object_ = object;
  return next;
}

fault fault::on_this_thread() const {
  fault next = *this;
  next.this_thread_ = true;
  return next;
}

fault fault::negated() const {
  if (row_of(call_).reports != convention::code)
    throw std::logic_error(std::string("shim: ") + name(call_) +
                           " does not return the error number, so it cannot be negative");
  fault next = *this;
  next.negated_ = true;
  return next;
}

fault fault::at_request(std::size_t k) const {
  if (k == 0) throw std::logic_error("shim: fault.at_request(0): requests count from 1");
  if (!row_of(call_).takes_requests)
    throw std::logic_error(std::string("shim: ") + name(call_) + " takes no list of requests");
  fault next = *this;
  next.request_ = k;
  return next;
}

fault fault::after_effect() const {
  if (!row_of(call_).can_fail_after_effect)
    throw std::logic_error(std::string("shim: ") + name(call_) +
                           " has no effect that could outlast its failure");
  fault next = *this;
  next.after_effect_ = true;
  return next;
}

void fault::with(int code) const {
  if (code <= 0 || code > 4095)
    throw std::logic_error("shim: fault.with(" + std::to_string(code) +
                           "): an errno is in 1..4095");
  if (call_ == verb::allocate && code != ENOMEM)
    throw std::logic_error("shim: an allocation fails with ENOMEM only");
  if (index_ != 0)
    throw std::logic_error(
        "shim: at_call() is for run() and unplug(): how the call fails depends "
        "on its verb");
  put_in_force(code, nullptr);
}

void fault::without_errno() const {
  if (row_of(call_).reports != convention::pointer)
    throw std::logic_error(std::string("shim: ") + name(call_) +
                           " returns no pointer, so it cannot fail without saying why");
  fault next = *this;
  next.unspecified_ = true;
  next.put_in_force(0, nullptr);
}

void fault::unplug(std::string device) const {
  const engine::suppress_interception quiet;
  if (!device_called(engine::lock_session().state, device))
    throw std::logic_error("shim: there is no simulated device '" + device + "'");
  run([device = std::move(device)] {
    const engine::suppress_interception shims_own;
    const auto seen = engine::lock_session();
    sim_device& gone = *device_called(seen.state, device);
    if (gone.lost) return;
    remove_device(seen.state, gone);
    retry_waiting(seen.state);
  });
}

void fault::run(std::function<void()> action) const {
  if (!action) throw std::logic_error("shim: fault.run() without an action would do nothing");
  if (negated_ || after_effect_ || request_ != 0)
    throw std::logic_error(
        "shim: negated(), after_effect() and at_request() are about a failure, "
        "which run() and unplug() are none");
  put_in_force(0, std::move(action));
}

void fault::put_in_force(int code, std::function<void()> action) const {
  const engine::suppress_interception quiet;
  fault_rule rule;
  rule.call = call_;
  rule.index = index_;
  rule.nth = nth_;
  rule.times = times_;
  rule.object = object_;
  if (this_thread_) rule.thread = std::this_thread::get_id();
  rule.code = code;
  rule.fails = code != 0 || unspecified_;
  rule.negated = negated_;
  rule.after_effect = after_effect_;
  rule.request = request_;
  rule.action = std::move(action);
  const auto seen = engine::lock_session();
  // No other simulated object gets the address of the one that the rule is about.
  if (record* const object = object_ ? seen.state.objects.find(object_) : nullptr)
    seen.state.objects.pin(*object);
  seen.state.plan.add(std::move(rule));
}

}  // namespace ibvxx::shim
