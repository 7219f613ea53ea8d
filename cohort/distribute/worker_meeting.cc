#include "cohort/distribute/worker_meeting.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"

namespace cohort::distribute {
namespace {

// Between the parts of a fact and between facts, in what is sent.
constexpr char kUnit = '\x1f';
constexpr char kRecord = '\x1e';
// Begins what is sent in place of a text by a process that has failed: its code and its message follow.
constexpr char kFailure = '\x1d';
// Begins every text of Gather, which may hold any bytes, so that none of them looks like a failure.
constexpr char kText = '\x1c';
// How long AnnounceFailure waits for each of its two steps.
constexpr int64_t kAnnouncementMs = 3000;
// Of a value, in messages.
constexpr size_t kShown = 200;

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string Packed(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) {
    text += name;
    text += kUnit;
    text += value;
    text += kRecord;
  }
  return text;
}

Facts Unpacked(const std::string& text) {
  Facts facts;
  size_t begin = 0;
  for (size_t end = text.find(kRecord); end != std::string::npos; end = text.find(kRecord, begin)) {
    const size_t unit = std::min(text.find(kUnit, begin), end);
    facts.emplace_back(text.substr(begin, unit - begin), unit < end ? text.substr(unit + 1, end - unit - 1) : "");
    begin = end + 1;
  }
  return facts;
}

// The fact, of a long value the part from character `from` on.
std::string Shown(const Facts& facts, size_t index, size_t from) {
  if (index >= facts.size()) return "nothing more";
  const auto& [name, value] = facts[index];
  if (value.size() <= kShown) return StrCat(name, ": ", value);
  from = std::min(from, value.size());
  return StrCat(name, ": ", from > 0 ? "..." : "", value.substr(from, kShown),
                value.size() - from > kShown ? "..." : "");
}

// Where to begin so that the first difference of two values is seen, with what stands before it.
size_t BeforeDifference(const Facts& a, const Facts& b, size_t index) {
  if (index >= a.size() || index >= b.size()) return 0;
  const std::string& left = a[index].second;
  const std::string& right = b[index].second;
  const auto differs = std::mismatch(left.begin(), left.end(), right.begin(), right.end()).first;
  const auto at = static_cast<size_t>(differs - left.begin());
  return at > kShown / 2 ? at - kShown / 2 : 0;
}

}  // namespace

// A graph of one process: its part of two collectives.
struct WorkerMeeting::Calls {
  Graph graph;
  Output bytes;
  Output gathered;
  Node* barrier = nullptr;
  std::unique_ptr<Session> session;
};

WorkerMeeting::WorkerMeeting(ops::CollectiveKeys keys, std::string target, std::string device)
    : keys_(std::move(keys)), target_(std::move(target)), device_(std::move(device)) {}

WorkerMeeting::~WorkerMeeting() = default;

WorkerMeeting::Calls& WorkerMeeting::calls() {
  if (calls_ != nullptr) return *calls_;
  auto made = std::make_unique<Calls>();
  {
    const DeviceScope device(made->graph, device_);
    ops::CollectiveKeys keys = keys_;
    made->bytes = ops::Placeholder(made->graph, DType::kUint8, Shape{-1}, "bytes");
    keys.instance_key = 1;
    made->gathered = ops::CollectiveGather(made->bytes, keys, "agreement");
    keys.instance_key = 2;
    made->barrier = ops::CollectiveBarrier(made->graph, keys, "barrier");
  }
  made->session = std::make_unique<Session>(made->graph, target_);
  calls_ = std::move(made);
  return *calls_;
}

Tensor WorkerMeeting::GatherTensor(const Tensor& mine, const RunOptions& run) {
  Calls& calls = this->calls();
  return calls.session->Run({{calls.bytes, mine}}, {calls.gathered}, {}, run).front();
}

std::vector<std::string> WorkerMeeting::Gather(const std::string& mine) {
  if (size() == 1) return {mine};
  std::vector<std::string> texts = GatherTexts(kText + mine);
  OpenTexts(&texts);
  return texts;
}

void WorkerMeeting::OpenTexts(std::vector<std::string>* texts) const {
  for (size_t i = 0; i < texts->size(); ++i) {
    const std::string& text = (*texts)[i];
    if (text.size() < 2 || text.front() != kFailure) continue;
    ThrowError(static_cast<Code>(text[1]), FailureOf(static_cast<int>(i), text.substr(2)));
  }
  for (std::string& text : *texts) text.erase(0, 1);
}

void WorkerMeeting::AnnounceFailure(const Status& why) {
  if (size() == 1) return;
  try {
    GatherTexts(StrCat(kFailure, static_cast<char>(why.code()), why.message()), {.timeout_in_ms = kAnnouncementMs});
  } catch (const Error& error) {
    LogInfo("distribute", "other workers may not hear why this one fails: ", error.what());
  }
}

std::string WorkerMeeting::FailureOf(int worker, const std::string& why) const {
  return StrCat("[distribute] ", Describe(worker), " has failed: ", why);
}

std::vector<std::string> WorkerMeeting::GatherTexts(const std::string& mine, const RunOptions& run) {
  MutexLock lock(mu_);
  // Lengths first: all bring equally many bytes.
  Tensor length(DType::kUint8, Shape{static_cast<int64_t>(sizeof(uint64_t))});
  const uint64_t own = mine.size();
  std::memcpy(length.raw_data(), &own, sizeof(own));
  const Tensor all_lengths = GatherTensor(length, run);
  std::vector<uint64_t> lengths(static_cast<size_t>(size()));
  std::memcpy(lengths.data(), all_lengths.raw_data(), lengths.size() * sizeof(uint64_t));
  const uint64_t longest = std::max<uint64_t>(1, *std::max_element(lengths.begin(), lengths.end()));
  Tensor text = Tensor::Zeros(DType::kUint8, Shape{static_cast<int64_t>(longest)});
  if (!mine.empty()) std::memcpy(text.raw_data(), mine.data(), mine.size());
  const Tensor all = GatherTensor(text, run);
  std::vector<std::string> texts;
  for (size_t i = 0; i < lengths.size(); ++i) {
    texts.emplace_back(static_cast<const char*>(all.raw_data()) + i * longest, lengths[i]);
  }
  return texts;
}

bool WorkerMeeting::Any(bool mine) {
  if (size() == 1) return mine;
  MutexLock lock(mu_);
  Tensor flag = Tensor::Zeros(DType::kUint8, Shape{1});
  flag.data<uint8_t>()[0] = mine ? 1 : 0;
  const Tensor all = GatherTensor(flag);
  return std::any_of(all.data<uint8_t>(), all.data<uint8_t>() + all.num_elements(), [](uint8_t v) { return v != 0; });
}

void WorkerMeeting::Barrier() {
  if (size() == 1) return;
  MutexLock lock(mu_);
  Calls& calls = this->calls();
  calls.session->Run(calls.barrier);
}

std::string WorkerMeeting::Describe(int worker) const {
  return StrCat("worker ", worker, " (", keys_.members.at(static_cast<size_t>(worker)), ")");
}

void WorkerMeeting::ExpectAgreement(const std::string& what, const Facts& facts) {
  if (size() == 1) return;
  std::vector<std::string> texts;
  try {
    texts = GatherTexts(kText + Packed(facts));
  } catch (const Error& error) {
    ThrowError(error.code(), StrCat(what, "; got no answer of all: ", error.what(),
                                    "; let every worker make the same calls in the same order"));
  }
  OpenTexts(&texts);
  const Facts first = Unpacked(texts[0]);
  for (size_t i = 1; i < texts.size(); ++i) {
    if (texts[i] == texts[0]) continue;
    const Facts other = Unpacked(texts[i]);
    size_t index = 0;
    while (index < first.size() && index < other.size() && first[index] == other[index]) ++index;
    const size_t from = BeforeDifference(first, other, index);
    throw WorkersDisagreeError(StrCat(what, "; got, at ", Describe(0), ", ", Shown(first, index, from), "; at ",
                                      Describe(static_cast<int>(i)), ", ", Shown(other, index, from)));
  }
}

}  // namespace cohort::distribute
