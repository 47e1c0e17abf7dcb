// Reading and acknowledging events.
#include "device/events.hpp"

#include "forward/recorded_verbs.hpp"
#include "intercept/intercept.hpp"

using namespace ibvxx;
using namespace ibvxx::shim;

extern "C" {

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  return intercepted(verb::get_cq_event, &real::get_cq_event, &device::get_cq_event, channel, cq,
                     cq_context);
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned events) {
  intercepted(verb::ack_cq_events, &real::ack_cq_events, &device::ack_cq_events, cq, events);
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return intercepted(verb::get_async_event, &real::get_async_event, &device::get_async_event,
                     context, event);
}

void ibv_ack_async_event(ibv_async_event* event) {
  intercepted(verb::ack_async_event, &real::ack_async_event, &device::ack_async_event, event);
}

}  // extern "C"
