// What is said of each completion status.
#include <array>
#include <ibvxx/completion_status.hpp>
#include <string>
#include <string_view>

#include "catch.hpp"

namespace ibvxx::completion_status_test {

static_assert(classify(IBV_WC_SUCCESS) == completion_class::success);
static_assert(classify(IBV_WC_WR_FLUSH_ERR) == completion_class::flushed);

TEST_CASE("each status has its own entry, under its own name", "[completion_status]") {
  constexpr std::pair<ibv_wc_status, std::string_view> all[] = {
      {IBV_WC_SUCCESS, "IBV_WC_SUCCESS"},
      {IBV_WC_LOC_LEN_ERR, "IBV_WC_LOC_LEN_ERR"},
      {IBV_WC_LOC_QP_OP_ERR, "IBV_WC_LOC_QP_OP_ERR"},
      {IBV_WC_LOC_EEC_OP_ERR, "IBV_WC_LOC_EEC_OP_ERR"},
      {IBV_WC_LOC_PROT_ERR, "IBV_WC_LOC_PROT_ERR"},
      {IBV_WC_WR_FLUSH_ERR, "IBV_WC_WR_FLUSH_ERR"},
      {IBV_WC_MW_BIND_ERR, "IBV_WC_MW_BIND_ERR"},
      {IBV_WC_BAD_RESP_ERR, "IBV_WC_BAD_RESP_ERR"},
      {IBV_WC_LOC_ACCESS_ERR, "IBV_WC_LOC_ACCESS_ERR"},
      {IBV_WC_REM_INV_REQ_ERR, "IBV_WC_REM_INV_REQ_ERR"},
      {IBV_WC_REM_ACCESS_ERR, "IBV_WC_REM_ACCESS_ERR"},
      {IBV_WC_REM_OP_ERR, "IBV_WC_REM_OP_ERR"},
      {IBV_WC_RETRY_EXC_ERR, "IBV_WC_RETRY_EXC_ERR"},
      {IBV_WC_RNR_RETRY_EXC_ERR, "IBV_WC_RNR_RETRY_EXC_ERR"},
      {IBV_WC_LOC_RDD_VIOL_ERR, "IBV_WC_LOC_RDD_VIOL_ERR"},
      {IBV_WC_REM_INV_RD_REQ_ERR, "IBV_WC_REM_INV_RD_REQ_ERR"},
      {IBV_WC_REM_ABORT_ERR, "IBV_WC_REM_ABORT_ERR"},
      {IBV_WC_INV_EECN_ERR, "IBV_WC_INV_EECN_ERR"},
      {IBV_WC_INV_EEC_STATE_ERR, "IBV_WC_INV_EEC_STATE_ERR"},
      {IBV_WC_FATAL_ERR, "IBV_WC_FATAL_ERR"},
      {IBV_WC_RESP_TIMEOUT_ERR, "IBV_WC_RESP_TIMEOUT_ERR"},
      {IBV_WC_GENERAL_ERR, "IBV_WC_GENERAL_ERR"},
      {IBV_WC_TM_ERR, "IBV_WC_TM_ERR"},
      {IBV_WC_TM_RNDV_INCOMPLETE, "IBV_WC_TM_RNDV_INCOMPLETE"},
  };
  static_assert(std::size(all) == IBV_WC_TM_RNDV_INCOMPLETE + 1);
  for (const auto& [status, wanted] : all) {
    const completion_info& info = describe(status);
    CHECK(info.status == status);
    CHECK(wc_status_name(status) == wanted);
    const std::string_view advice = info.advice;
    INFO(wanted << ": " << advice);
    CHECK_FALSE(advice.empty());
    CHECK(advice.find('\n') == advice.npos);  // one line
    CHECK(advice.size() <= 180);
  }
}

TEST_CASE("the statuses of RC fall into the class that says what to do", "[completion_status]") {
  // Unknown lkey: Soft-RoCE says the first, hardware the second.
  CHECK(classify(IBV_WC_LOC_QP_OP_ERR) == completion_class::local_bug);
  CHECK(classify(IBV_WC_LOC_PROT_ERR) == completion_class::local_bug);
  CHECK(classify(IBV_WC_REM_ACCESS_ERR) == completion_class::access);
  CHECK(classify(IBV_WC_REM_INV_REQ_ERR) == completion_class::remote_bug);
  CHECK(classify(IBV_WC_RNR_RETRY_EXC_ERR) == completion_class::not_ready);
  CHECK(classify(IBV_WC_RETRY_EXC_ERR) == completion_class::unreachable);
  CHECK(classify(IBV_WC_FATAL_ERR) == completion_class::device);
  CHECK(classify(IBV_WC_LOC_EEC_OP_ERR) == completion_class::obsolete);
}

TEST_CASE("a status that is newer than the table is unknown, not another's",
          "[completion_status]") {
  const auto newer = static_cast<ibv_wc_status>(IBV_WC_TM_RNDV_INCOMPLETE + 1);
  CHECK(classify(newer) == completion_class::unknown);
  CHECK(wc_status_name(newer) == std::string_view("unknown status"));
  CHECK(is_failure(newer));
}

TEST_CASE("every class of completion has a name", "[completion_status]") {
  for (int i = 0; i <= static_cast<int>(completion_class::unknown); ++i) {
    const auto kind = static_cast<completion_class>(i);
    CHECK(std::string_view(name(kind)) != "?");
  }
  CHECK(name(completion_class::local_bug) == std::string_view("local bug"));
  CHECK(name(completion_class::unknown) == std::string_view("unknown"));
}

TEST_CASE("the first cause is found among successes and flushes", "[completion_status]") {
  std::array<ibv_wc, 5> completions{};
  const auto statuses = [&](std::array<ibv_wc_status, 5> given) {
    for (std::size_t i = 0; i < given.size(); ++i) completions[i].status = given[i];
    return first_cause(completions);
  };
  CHECK(statuses({IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_REM_OP_ERR,
                  IBV_WC_WR_FLUSH_ERR}) == &completions[2]);
  CHECK(statuses({}) == nullptr);
  CHECK(statuses({IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR,
                  IBV_WC_TM_RNDV_INCOMPLETE, IBV_WC_SUCCESS}) == nullptr);
  CHECK(first_cause({}) == nullptr);
}

}  // namespace ibvxx::completion_status_test
