#include "transcript.hpp"

#include <cstdio>
#include <cstring>

namespace conformance {
namespace {

std::string group;
char last[256] = "none";

}  // namespace

void begin_group(std::string name) {
  group = std::move(name);
}

void probe(const std::string& name, const std::string& outcome) {
  std::snprintf(last, sizeof last, "%s/%s", group.c_str(), name.c_str());
  std::printf("%s: %s\n", last, outcome.c_str());
  std::fflush(stdout);
}

const char* last_probe() noexcept {
  return last;
}

std::string errno_name(int code) {
  if (code == 0) return "0";
  const char* const known = ::strerrorname_np(code);
  return known ? known : std::to_string(code);
}

std::string code_name(int returned) {
  return returned < 0 ? "-" + errno_name(-returned) : errno_name(returned);
}

std::string errno_state(int code) {
  return code == untouched ? "untouched" : errno_name(code);
}

std::string hex(unsigned long long value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", value);
  return text;
}

std::string name(ibv_qp_state state) {
  static constexpr const char* names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  const auto index = static_cast<unsigned>(state);
  return index < std::size(names) ? names[index] : std::to_string(index);
}

std::string name(ibv_wc_status status) {
  static constexpr const char* names[] = {
      "SUCCESS",          "LOC_LEN_ERR",     "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
      "LOC_PROT_ERR",     "WR_FLUSH_ERR",    "MW_BIND_ERR",       "BAD_RESP_ERR",
      "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR", "REM_ACCESS_ERR",    "REM_OP_ERR",
      "RETRY_EXC_ERR",    "RNR_RETRY_EXC",   "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
      "REM_ABORT_ERR",    "INV_EECN_ERR",    "INV_EEC_STATE_ERR", "FATAL_ERR",
      "RESP_TIMEOUT_ERR", "GENERAL_ERR"};
  const auto index = static_cast<unsigned>(status);
  return index < std::size(names) ? names[index] : std::to_string(index);
}

std::string name(ibv_event_type event) {
  static constexpr const char* names[] = {"CQ_ERR",
                                          "QP_FATAL",
                                          "QP_REQ_ERR",
                                          "QP_ACCESS_ERR",
                                          "COMM_EST",
                                          "SQ_DRAINED",
                                          "PATH_MIG",
                                          "PATH_MIG_ERR",
                                          "DEVICE_FATAL",
                                          "PORT_ACTIVE",
                                          "PORT_ERR",
                                          "LID_CHANGE",
                                          "PKEY_CHANGE",
                                          "SM_CHANGE",
                                          "SRQ_ERR",
                                          "SRQ_LIMIT_REACHED",
                                          "QP_LAST_WQE_REACHED",
                                          "CLIENT_REREGISTER",
                                          "GID_CHANGE",
                                          "WQ_FATAL"};
  const auto index = static_cast<unsigned>(event);
  return index < std::size(names) ? names[index] : std::to_string(index);
}

std::string name(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_RAW_PACKET:
      return "RAW_PACKET";
    case IBV_QPT_XRC_SEND:
      return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
      return "XRC_RECV";
    case IBV_QPT_DRIVER:
      return "DRIVER";
  }
  return std::to_string(static_cast<int>(type));
}

std::string wc_opcode_name(unsigned opcode) {
  switch (opcode) {
    case IBV_WC_SEND:
      return "SEND";
    case IBV_WC_RDMA_WRITE:
      return "RDMA_WRITE";
    case IBV_WC_RDMA_READ:
      return "RDMA_READ";
    case IBV_WC_COMP_SWAP:
      return "COMP_SWAP";
    case IBV_WC_FETCH_ADD:
      return "FETCH_ADD";
    case IBV_WC_BIND_MW:
      return "BIND_MW";
    case IBV_WC_LOCAL_INV:
      return "LOCAL_INV";
    case IBV_WC_RECV:
      return "RECV";
    case IBV_WC_RECV_RDMA_WITH_IMM:
      return "RECV_RDMA_WITH_IMM";
    default:
      return std::to_string(opcode);
  }
}

}  // namespace conformance
