// WorkerMeeting. Each process has a small graph with a gather and a barrier, and a session for it (Calls). An
// announcement is a text, or the failure of a process. GatherBytes first gathers the lengths and then the bytes, padded
// to the longest, because all members of a gather must have equally many bytes.
#include "cohort/distribute/worker_meeting.h"

#include <algorithm>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/wire.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"

namespace cohort::distribute {
namespace {

// A process's message to all others: a text, or the reason why it has failed.
struct Announcement {
  Status failure;
  std::string text;
};

// The limit of each of the two steps of AnnounceFailure.
constexpr std::chrono::milliseconds kAnnouncementTime{3000};
// The longest part of a value that an error shows.
constexpr size_t kShown = 200;

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string Encode(const Announcement& announcement) {
  WireWriter out;
  PutStatus(out, announcement.failure);
  out.String(announcement.text);
  return out.Take();
}

Announcement DecodeAnnouncement(const std::string& bytes) {
  WireReader in(bytes);
  Announcement announcement;
  announcement.failure = GetStatus(in);
  announcement.text = in.String();
  in.ExpectEnd();
  return announcement;
}

std::string Encode(const Facts& facts) {
  WireWriter out;
  for (const auto& [name, value] : facts) {
    out.String(name);
    out.String(value);
  }
  return out.Take();
}

Facts DecodeFacts(const std::string& bytes) {
  WireReader in(bytes);
  Facts facts;
  while (!in.AtEnd()) {
    std::string name = in.String();
    facts.emplace_back(std::move(name), in.String());
  }
  return facts;
}

// Returns `bytes` and zeros up to `size`.
Tensor TensorOf(std::string_view bytes, size_t size) {
  Tensor tensor = Tensor::Zeros(DType::kUint8, Shape{static_cast<int64_t>(size)});
  std::copy(bytes.begin(), bytes.end(), tensor.data<uint8_t>());
  return tensor;
}

std::string_view BytesOf(const Tensor& tensor) { return {static_cast<const char*>(tensor.raw_data()), tensor.bytes()}; }

// Returns a text for a fact. For a long value it has the part that begins at the character `from`.
std::string Shown(const Facts& facts, size_t index, size_t from) {
  if (index >= facts.size()) return "nothing more";
  const auto& [name, value] = facts[index];
  if (value.size() <= kShown) return StrCat(name, ": ", value);
  from = std::min(from, value.size());
  return StrCat(name, ": ", from > 0 ? "..." : "", value.substr(from, kShown),
                value.size() - from > kShown ? "..." : "");
}

// Returns a value of `from` for Shown. The shown part then has the first difference of two values, and some characters
// before it.
size_t BeforeDifference(const Facts& a, const Facts& b, size_t index) {
  if (index >= a.size() || index >= b.size()) return 0;
  const std::string& left = a[index].second;
  const std::string& right = b[index].second;
  const auto differs = std::mismatch(left.begin(), left.end(), right.begin(), right.end()).first;
  const auto at = static_cast<size_t>(differs - left.begin());
  return at > kShown / 2 ? at - kShown / 2 : 0;
}

}  // namespace

// This process's graph, with its part of two collectives, and the session that runs it.
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
  return TextsOf(GatherBytes(Encode(Announcement{{}, mine})));
}

std::vector<std::string> WorkerMeeting::TextsOf(const std::vector<std::string>& announcements) const {
  std::vector<std::string> texts;
  for (const std::string& bytes : announcements) {
    Announcement theirs = DecodeAnnouncement(bytes);
    if (const Status& failure = theirs.failure; !failure.ok()) {
      ThrowError(failure.code(), FailureOf(static_cast<int>(texts.size()), failure.message()));
    }
    texts.push_back(std::move(theirs.text));
  }
  return texts;
}

void WorkerMeeting::AnnounceFailure(const Status& why) {
  if (size() == 1) return;
  try {
    GatherBytes(Encode(Announcement{why, ""}), {.timeout = kAnnouncementTime});
  } catch (const Error& error) {
    LogInfo("distribute", "other workers may not hear why this one fails: ", error.what());
  }
}

std::string WorkerMeeting::FailureOf(int worker, const std::string& why) const {
  return StrCat("[distribute] ", Describe(worker), " has failed: ", why);
}

std::vector<std::string> WorkerMeeting::GatherBytes(const std::string& mine, const RunOptions& run) {
  MutexLock lock(mu_);
  // Gathers the lengths first, because all members of a gather must have equally many bytes.
  WireWriter own;
  own.Fixed64(mine.size());
  const Tensor all_lengths = GatherTensor(TensorOf(own.view(), sizeof(uint64_t)), run);
  WireReader in(BytesOf(all_lengths));
  std::vector<size_t> lengths;
  while (!in.AtEnd()) lengths.push_back(in.Fixed64());
  const size_t longest = std::max<size_t>(1, *std::max_element(lengths.begin(), lengths.end()));
  const Tensor all = GatherTensor(TensorOf(mine, longest), run);
  std::vector<std::string> gathered;
  for (size_t i = 0; i < lengths.size(); ++i) gathered.emplace_back(BytesOf(all).substr(i * longest, lengths[i]));
  return gathered;
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
  std::vector<std::string> announcements;
  try {
    announcements = GatherBytes(Encode(Announcement{{}, Encode(facts)}));
  } catch (const Error& error) {
    ThrowError(error.code(), StrCat(what, "; got no answer of all: ", error.what(),
                                    "; let every worker make the same calls in the same order"));
  }
  const std::vector<std::string> texts = TextsOf(announcements);
  const Facts first = DecodeFacts(texts[0]);
  for (size_t i = 1; i < texts.size(); ++i) {
    if (texts[i] == texts[0]) continue;
    const Facts other = DecodeFacts(texts[i]);
    size_t index = 0;
    while (index < first.size() && index < other.size() && first[index] == other[index]) ++index;
    const size_t from = BeforeDifference(first, other, index);
    throw WorkersDisagreeError(StrCat(what, "; got, at ", Describe(0), ", ", Shown(first, index, from), "; at ",
                                      Describe(static_cast<int>(i)), ", ", Shown(other, index, from)));
  }
}

}  // namespace cohort::distribute
