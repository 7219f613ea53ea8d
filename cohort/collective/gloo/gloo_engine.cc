// GlooEngine. The TurnOrder gives calls to the lanes of their sizes, which run them. Explain finds out why a connection
// of Gloo's broke.
#include "cohort/collective/gloo/gloo_engine.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

// The largest tensor of each lane in bytes. The last lane has no limit.
constexpr size_t kLaneLimits[] = {64 * 1024};
constexpr size_t kLanes = std::size(kLaneLimits) + 1;

size_t LaneOf(const CallSignature& what) {
  const size_t bytes =
      what.kind == CallKind::kBarrier ? 0 : static_cast<size_t>(what.shape.num_elements()) * DTypeSize(what.dtype);
  return static_cast<size_t>(std::lower_bound(std::begin(kLaneLimits), std::end(kLaneLimits), bytes) -
                             std::begin(kLaneLimits));
}

}  // namespace

EngineFactory GlooEngineFactory() {
  return {true,
          [](const GroupOptions& options, const MemberList& members) {
            return options.algorithm == Algorithm::kGloo && !members.has_one_process();
          },
          [](EngineHost& host, const std::string& own_address) -> std::unique_ptr<CollectiveEngine> {
            return std::make_unique<GlooEngine>(host, own_address);
          },
          false};
}

GlooEngine::GlooEngine(EngineHost& host, const std::string& own_address)
    : host_(host),
      order_(host, {"Gloo", 0, kLanes, LaneOf, [this](size_t lane, int64_t turn, std::shared_ptr<TurnCall> call) {
                      const auto local = static_cast<size_t>(host_.members().local_index(call->rank()));
                      lanes_[local * kLanes + lane]->Add(turn, std::move(call));
                    }}) {
  std::vector<int> ranks;
  for (const int rank : host.members().local_ranks()) ranks.insert(ranks.end(), kLanes, rank);
  for (auto& mesh : MakeGlooMeshes(own_address, ranks, host.members().size())) {
    lanes_.push_back(
        std::make_unique<GlooLane>(host.members().size(), std::move(mesh),
                                   [this](const std::shared_ptr<TurnCall>& call, const Status& status, Tensor result) {
                                     order_.Finish(call, status.ok() ? status : Explain(status), std::move(result));
                                   }));
  }
}

GlooEngine::~GlooEngine() = default;

std::vector<std::string> GlooEngine::Endpoints() const {
  std::vector<std::string> endpoints;
  endpoints.reserve(lanes_.size());
  for (const auto& lane : lanes_) endpoints.push_back(lane->mesh().Endpoint());
  return endpoints;
}

size_t GlooEngine::NumEndpointsOf(int process) const {
  return static_cast<size_t>(host_.members().NumMembersOf(process)) * kLanes;
}

void GlooEngine::Connect(const std::vector<std::vector<std::string>>& endpoints) {
  std::vector<std::vector<std::string>> by_lane(kLanes,
                                                std::vector<std::string>(static_cast<size_t>(host_.members().size())));
  std::vector<size_t> taken(endpoints.size());  // by process
  for (size_t rank = 0; rank < by_lane[0].size(); ++rank) {
    const auto process = static_cast<size_t>(host_.members().process_of(static_cast<int>(rank)));
    for (auto& lane : by_lane) lane[rank] = endpoints.at(process).at(taken[process]++);
  }
  // Connects all lanes at the same time, because each waits for others, some of them in this process.
  std::vector<Status> outcomes(lanes_.size());
  std::vector<std::thread> threads;
  const auto connect = [this, &by_lane, &outcomes](size_t i) {
    try {
      lanes_[i]->mesh().Connect(by_lane[i % kLanes]);
    } catch (...) {
      outcomes[i] = Status::FromCurrentException();
    }
  };
  Status no_thread;
  try {
    for (size_t i = 0; i < lanes_.size(); ++i) threads.emplace_back(connect, i);
  } catch (const std::system_error& error) {
    no_thread = Status(Code::kResourceExhausted, StrCat("[collective] expected a thread for each of ", lanes_.size(),
                                                        " meshes of Gloo; got ", threads.size(), ": ", error.what()));
    for (const auto& lane : lanes_) lane->mesh().Close();  // ends Connect
  }
  for (std::thread& thread : threads) thread.join();
  if (!no_thread.ok()) Explain(no_thread).ThrowIfError();
  for (const Status& outcome : outcomes) {
    if (!outcome.ok()) Explain(outcome).ThrowIfError();
  }
  order_.OnConnected();
}

void GlooEngine::Deliver(const DataMessage& data, Tensor tensor, bool) { order_.Deliver(data, tensor); }

void GlooEngine::AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) {
  order_.AppendUnfinished(all);
}

bool GlooEngine::IsOwnThread() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->IsOwnThread(); });
}

void GlooEngine::Join() {
  for (const auto& lane : lanes_) lane->Join();
}

}  // namespace cohort::collective
