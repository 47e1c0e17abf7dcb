// The groups of probes, in the order of the transcript.
#pragma once

#include "setting.hpp"

namespace conformance {

struct group {
  const char* name;
  void (*run)(const setting&);
};

void probe_device(const setting& s);
void probe_port(const setting& s);
void probe_memory(const setting& s);
void probe_window(const setting& s);
void probe_cq(const setting& s);
void probe_channel(const setting& s);
void probe_qp(const setting& s);
void probe_qp_caps(const setting& s);
void probe_srq(const setting& s);
void probe_ah(const setting& s);
void probe_destroy(const setting& s);
void probe_not_offered(const setting& s);
void probe_transitions_rc(const setting& s);
void probe_transitions_uc(const setting& s);
void probe_transitions_ud(const setting& s);
void probe_transition_values(const setting& s);
void probe_query_qp(const setting& s);
void probe_posting(const setting& s);
void probe_transfer(const setting& s);
void probe_atomic(const setting& s);
void probe_refusal(const setting& s);
void probe_retry(const setting& s);
void probe_packet(const setting& s);
void probe_flush(const setting& s);
void probe_unreliable(const setting& s);
void probe_datagram(const setting& s);
void probe_multicast(const setting& s);
void probe_shared_receive(const setting& s);
void probe_extended(const setting& s);
void probe_notification(const setting& s);
void probe_acknowledgement(const setting& s);
void probe_async(const setting& s);
void probe_world(const setting& s);

}  // namespace conformance
