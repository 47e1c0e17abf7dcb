// The table of queue pair transitions, against the kernel's own written out the long way.
#include <ibvxx/qp_transition.hpp>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "support/seed.hpp"

namespace ibvxx::qp_transition_test {

namespace {

constexpr ibv_qp_type all_types[] = {IBV_QPT_RC,       IBV_QPT_UC,       IBV_QPT_UD,
                                     IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_RAW_PACKET};
constexpr ibv_qp_state all_states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                       IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};

// from, to: type = required / optional; an indented line continues the one before. Every type
// that is not named takes nothing.
constexpr const char* kernel_text = R"(
RESET INIT: RC = PKEY_INDEX PORT ACCESS_FLAGS /
RESET INIT: UC = PKEY_INDEX PORT ACCESS_FLAGS /
RESET INIT: XRC_SEND = PKEY_INDEX PORT ACCESS_FLAGS /
RESET INIT: XRC_RECV = PKEY_INDEX PORT ACCESS_FLAGS /
RESET INIT: UD = PKEY_INDEX PORT QKEY /
RESET INIT: RAW_PACKET = PORT /
INIT INIT: RC = / PKEY_INDEX PORT ACCESS_FLAGS
INIT INIT: UC = / PKEY_INDEX PORT ACCESS_FLAGS
INIT INIT: XRC_SEND = / PKEY_INDEX PORT ACCESS_FLAGS
INIT INIT: XRC_RECV = / PKEY_INDEX PORT ACCESS_FLAGS
INIT INIT: UD = / PKEY_INDEX PORT QKEY
INIT RTR: RC = AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER
    / ALT_PATH ACCESS_FLAGS PKEY_INDEX
INIT RTR: UC = AV PATH_MTU DEST_QPN RQ_PSN / ALT_PATH ACCESS_FLAGS PKEY_INDEX
INIT RTR: XRC_SEND = AV PATH_MTU DEST_QPN RQ_PSN / ALT_PATH ACCESS_FLAGS PKEY_INDEX
INIT RTR: XRC_RECV = AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER
    / ALT_PATH ACCESS_FLAGS PKEY_INDEX
INIT RTR: UD = / PKEY_INDEX QKEY
RTR RTS: RC = TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC
    / CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE
RTR RTS: UC = SQ_PSN / CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE
RTR RTS: XRC_SEND = TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC
    / CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE
RTR RTS: XRC_RECV = TIMEOUT SQ_PSN / CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE
RTR RTS: UD = SQ_PSN / CUR_STATE QKEY
RTS RTS: RC = / CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE MIN_RNR_TIMER
RTS RTS: UC = / CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE
RTS RTS: XRC_SEND = / CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE
RTS RTS: XRC_RECV = / CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE MIN_RNR_TIMER
RTS RTS: UD = / CUR_STATE QKEY
RTS SQD: RC = / EN_SQD_ASYNC_NOTIFY
RTS SQD: UC = / EN_SQD_ASYNC_NOTIFY
RTS SQD: XRC_SEND = / EN_SQD_ASYNC_NOTIFY
RTS SQD: XRC_RECV = / EN_SQD_ASYNC_NOTIFY
RTS SQD: UD = / EN_SQD_ASYNC_NOTIFY
SQD RTS: RC = / CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE
SQD RTS: UC = / CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE
SQD RTS: XRC_SEND = / CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE
SQD RTS: XRC_RECV = / CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE
SQD RTS: UD = / CUR_STATE QKEY
SQD SQD: RC =
    / PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC ALT_PATH
    ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER PATH_MIG_STATE
SQD SQD: UC = / AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE
SQD SQD: XRC_SEND =
    / PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX
    PATH_MIG_STATE
SQD SQD: XRC_RECV =
    / PORT AV TIMEOUT MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER
    PATH_MIG_STATE
SQD SQD: UD = / PKEY_INDEX QKEY
SQE RTS: UD = / CUR_STATE QKEY
SQE RTS: UC = / CUR_STATE ACCESS_FLAGS
)";

// Transitions that exist, whatever they take.
constexpr const char* kernel_transitions =
    " RESET-RESET RESET-INIT INIT-RESET INIT-ERR INIT-INIT INIT-RTR RTR-RESET RTR-ERR RTR-RTS"
    " RTS-RESET RTS-ERR RTS-RTS RTS-SQD SQD-RESET SQD-ERR SQD-RTS SQD-SQD SQE-RESET SQE-ERR SQE-RTS"
    " ERR-RESET ERR-ERR ";

int bit_named(const std::string& attribute) {
  for (unsigned i = 0; i < 32; ++i)
    if (const char* known = qp_attribute_name(1U << i); known && attribute == known)
      return static_cast<int>(1U << i);
  FAIL("no attribute of the name " << attribute);
  return 0;
}

struct kernel_row {
  int required = 0, optional = 0;
};

const auto& kernel_table() {
  static const auto table = [] {
    std::map<std::tuple<std::string, std::string, std::string>, kernel_row> rows;
    std::string text = kernel_text;
    for (auto at = text.find("\n    "); at != text.npos; at = text.find("\n    ")) text[at] = ' ';
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) continue;
      std::istringstream words(line);
      std::string from, to, type, word;
      words >> from >> to >> type >> word;
      to.pop_back();
      kernel_row& row = rows[{from, to, type}];
      int* into = &row.required;
      while (words >> word)
        if (word == "/")
          into = &row.optional;
        else
          *into |= bit_named(word);
    }
    return rows;
  }();
  return table;
}

/// What the kernel answers, as ib_uverbs and the table together do it: the mask of an XRC queue
/// pair is cut first, and an AV that is set on the way to any state but RTR brings PORT with it.
bool kernel_accepts(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  if (type == IBV_QPT_XRC_SEND) mask &= ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (type == IBV_QPT_XRC_RECV)
    mask &= ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
  if ((mask & IBV_QP_AV) != 0 && to != IBV_QPS_RTR) mask |= IBV_QP_PORT;
  if ((mask & IBV_QP_CUR_STATE) != 0 && from != IBV_QPS_RTR && from != IBV_QPS_RTS &&
      from != IBV_QPS_SQD && from != IBV_QPS_SQE)
    return false;
  const std::string arrow = " " + std::string(qp_state_name(from)) + "-" + qp_state_name(to) + " ";
  if (std::string(kernel_transitions).find(arrow) == std::string::npos) return false;
  kernel_row row;
  if (const auto found =
          kernel_table().find({qp_state_name(from), qp_state_name(to), qp_type_name(type)});
      found != kernel_table().end())
    row = found->second;
  return (mask & row.required) == row.required &&
         (mask & ~(row.required | row.optional | IBV_QP_STATE)) == 0;
}

bool says(const result<void>& outcome, std::string_view wanted) {
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().call() == verb::modify_qp);
  CHECK(outcome.error().code() == EINVAL);
  INFO(outcome.error().message());
  CHECK(outcome.error().detail() == wanted);
  return outcome.error().detail() == wanted;
}

}  // namespace

TEST_CASE("every transition accepts what the kernel's table accepts", "[qp_transition]") {
  REQUIRE(kernel_table().size() == 43);
  for (const ibv_qp_type type : all_types)
    for (const ibv_qp_state from : all_states)
      for (const ibv_qp_state to : all_states) {
        const auto found = find_transition(type, from, to);
        const std::string arrow =
            " " + std::string(qp_state_name(from)) + "-" + qp_state_name(to) + " ";
        INFO(qp_type_name(type) << arrow);
        CHECK(found.has_value() ==
              (std::string(kernel_transitions).find(arrow) != std::string::npos));
        if (!found) continue;
        const auto row =
            kernel_table().find({qp_state_name(from), qp_state_name(to), qp_type_name(type)});
        const kernel_row wanted = row == kernel_table().end() ? kernel_row{} : row->second;
        CHECK(found->required == wanted.required);
        int optional = wanted.optional;
        if (type == IBV_QPT_UC && from == IBV_QPS_SQD) optional &= ~IBV_QP_AV;  // ib_uverbs
        if (type != IBV_QPT_RAW_PACKET) CHECK(found->optional == optional);
      }
}

TEST_CASE("any mask is accepted exactly when the kernel accepts it", "[qp_transition]") {
  std::mt19937 random(test::seed("qp_transition masks"));
  const auto dice = [&random](unsigned n) { return static_cast<int>(random() % n); };
  for (const ibv_qp_type type : all_types)
    for (const ibv_qp_state from : all_states)
      for (const ibv_qp_state to : all_states)
        for (int round = 0; round < 300; ++round) {
          int mask = static_cast<int>(random()) & ((1 << 21) - 1);
          // Mostly near what is accepted: all required, some optional, and up to two bits flipped.
          if (const auto transition = find_transition(type, from, to); transition && round % 10) {
            mask = IBV_QP_STATE | transition->required | (transition->optional & mask);
            for (int flips = dice(3); flips > 0; --flips) mask ^= 1 << dice(21);
          }
          const auto outcome = check_modify(type, from, to, mask);
          if (outcome.has_value() != kernel_accepts(type, from, to, mask)) {
            INFO(qp_type_name(type) << ' ' << qp_state_name(from) << ' ' << qp_state_name(to) << ' '
                                    << qp_attribute_names(mask).c_str());
            CHECK(outcome.has_value() == kernel_accepts(type, from, to, mask));
          }
        }
}

TEST_CASE("a refusal names what is missing and what is not allowed", "[qp_transition]") {
  const int rtr = find_transition(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR)->required | IBV_QP_STATE;
  CHECK(check_modify(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, rtr));
  says(check_modify(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
                    (rtr & ~(IBV_QP_PATH_MTU | IBV_QP_RQ_PSN)) | IBV_QP_QKEY),
       "RC INIT->RTR: missing PATH_MTU, RQ_PSN; not allowed: QKEY");
  says(check_modify(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, rtr & ~IBV_QP_AV),
       "RC INIT->RTR: missing AV");
  says(check_modify(IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT),
       "UD RTR->RTS: not allowed: TIMEOUT");
  says(check_modify(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_AV),
       "RC RTS->RTS: not allowed: AV");
  // The longest list still fits.
  says(check_modify(IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE),
       "XRC_RECV INIT->RTR: missing AV, PATH_MTU, RQ_PSN, MIN_RNR_TIMER, MAX_DEST_RD_ATOMIC, "
       "DEST_QPN");
}

TEST_CASE("a transition that does not exist is refused with that reason", "[qp_transition]") {
  says(check_modify(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_RTS, IBV_QP_STATE),
       "RC RESET->RTS: there is no such transition");
  says(check_modify(IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_ERR, IBV_QP_STATE),
       "UC RESET->ERR: there is no such transition");
  says(check_modify(IBV_QPT_RC, IBV_QPS_ERR, IBV_QPS_INIT, IBV_QP_STATE),
       "RC ERR->INIT: there is no such transition");
  says(check_modify(IBV_QPT_RC, IBV_QPS_UNKNOWN, IBV_QPS_INIT, IBV_QP_STATE),
       "RC UNKNOWN->INIT: there is no such transition");
  for (const ibv_qp_type type : all_types)
    for (const ibv_qp_state from : all_states) {
      CHECK(check_modify(type, from, IBV_QPS_RESET, IBV_QP_STATE));
      CHECK(check_modify(type, from, IBV_QPS_ERR, IBV_QP_STATE).has_value() ==
            (from != IBV_QPS_RESET));
    }
}

TEST_CASE("CUR_STATE is accepted in RTR, RTS, SQD and SQE only, in a change to RTS",
          "[qp_transition]") {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD})
    for (const ibv_qp_state from : all_states)
      for (const ibv_qp_state to : all_states) {
        const auto transition = find_transition(type, from, to);
        if (!transition) continue;
        const bool taken =
            check_modify(type, from, to, transition->required | IBV_QP_CUR_STATE).has_value();
        INFO(qp_type_name(type) << ' ' << qp_state_name(from) << ' ' << qp_state_name(to));
        // RC has no SQE: a failed send takes it to ERR.
        CHECK(taken == (to == IBV_QPS_RTS && (from != IBV_QPS_SQE || type != IBV_QPT_RC)));
      }
  says(check_modify(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_CUR_STATE),
       "RC RTS->SQD: not allowed: CUR_STATE");
}

TEST_CASE("attributes that depend on the kernel are not checked", "[qp_transition]") {
  const int rts = find_transition(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS)->required;
  CHECK(check_modify(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, rts | IBV_QP_RATE_LIMIT));
  CHECK(check_modify(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, rts | 1 << 27));
  CHECK((undecided_attributes(IBV_QPT_RC) & IBV_QP_RATE_LIMIT) != 0);
  CHECK((undecided_attributes(IBV_QPT_RC) & ((1 << 21) - 1)) == 0);
  // RAW_PACKET is where the table has it, and there it is judged.
  CHECK((undecided_attributes(IBV_QPT_RAW_PACKET) & IBV_QP_RATE_LIMIT) == 0);
  CHECK(check_modify(IBV_QPT_RAW_PACKET, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_RATE_LIMIT));
  CHECK(check_modify(IBV_QPT_RAW_PACKET, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_RATE_LIMIT));
  says(check_modify(IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT,
                    IBV_QP_PORT | IBV_QP_RATE_LIMIT),
       "RAW_PACKET RESET->INIT: not allowed: RATE_LIMIT");
  // Required attributes stay required, and CAP is in no kernel's table.
  says(check_modify(IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_RATE_LIMIT),
       "UC RTR->RTS: missing SQ_PSN");
  says(check_modify(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_CAP),
       "RC RTS->RTS: not allowed: CAP");
}

TEST_CASE("types without a table are not checked", "[qp_transition]") {
  CHECK_FALSE(has_transitions(IBV_QPT_DRIVER));
  CHECK_FALSE(find_transition(IBV_QPT_DRIVER, IBV_QPS_RESET, IBV_QPS_INIT));
  CHECK(check_modify(IBV_QPT_DRIVER, IBV_QPS_RESET, IBV_QPS_RTS, IBV_QP_QKEY));
}

TEST_CASE("the names of states, types and attributes", "[qp_transition]") {
  CHECK(qp_state_name(IBV_QPS_SQE) == std::string("SQE"));
  CHECK(qp_state_name(IBV_QPS_UNKNOWN) == std::string("UNKNOWN"));
  CHECK(qp_type_name(IBV_QPT_XRC_RECV) == std::string("XRC_RECV"));
  CHECK(qp_attribute_name(IBV_QP_DEST_QPN) == std::string("DEST_QPN"));
  CHECK(qp_attribute_name(IBV_QP_RATE_LIMIT) == std::string("RATE_LIMIT"));
  CHECK(qp_attribute_name(1U << 21) == nullptr);
  CHECK(qp_attribute_name(3) == nullptr);
  CHECK(qp_attribute_names(0).view() == "none");
  CHECK(qp_attribute_names(IBV_QP_STATE | IBV_QP_PORT).view() == "STATE, PORT");
  CHECK(qp_attribute_names(IBV_QP_STATE | 1 << 22 | 1 << 27).view() == "STATE, 0x8400000");
  CHECK(qp_attribute_names(-1).view().ends_with("RATE_LIMIT, 0xfde00000"));
}

// All of it is data: usable at compile time.
static_assert(find_transition(IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR)->required == 0);
static_assert(!find_transition(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_SQD));

}  // namespace ibvxx::qp_transition_test
