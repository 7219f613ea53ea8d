#include "cohort/backends/cuda/recording/recorded_graph.h"

#include <cstring>
#include <memory>
#include <utility>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {

void RecordedGraphs::Add(RecordedGraph* graph) {
  MutexLock lock(mu_);
  graphs_.push_back(graph);
}

void RecordedGraphs::Remove(RecordedGraph* graph) {
  MutexLock lock(mu_);
  std::erase(graphs_, graph);
}

bool RecordedGraphs::DropIdle() {
  MutexLock lock(mu_);
  bool dropped = false;
  for (RecordedGraph* graph : graphs_) dropped = graph->DropIfIdle() || dropped;
  return dropped;
}

RecordedGraph::RecordedGraph(const Home& home, GraphHandle graph, RecordedParts parts, int64_t epoch)
    : home_(home), epoch_(epoch), graph_(graph), parts_(std::move(parts)) {
  home_.graphs->Add(this);
}

RecordedGraph::~RecordedGraph() {
  home_.graphs->Remove(this);
  if (in_use_ && home_.compute.abandoned()) {
    // The run may go on later, and write to pinned memory.
    KeepUntilProcessEnds(std::make_shared<std::pair<GraphHandle, RecordedParts>>(graph_, std::move(parts_)));
  } else {
    DestroyGraph();
  }
}

void RecordedGraph::DestroyGraph() {
  if (graph_.native == nullptr || IsForkedFromUser()) return;  // in a forked child the graph is the parent's
  try {
    home_.driver.Destroy(std::exchange(graph_, GraphHandle()));
  } catch (const Error&) {
    // The card has failed. The process keeps the graph.
  }
}

bool RecordedGraph::Begin() {
  MutexLock lock(mu_);
  in_use_ = !dropped_;
  return in_use_;
}

void RecordedGraph::End() {
  staged_.clear();
  MutexLock lock(mu_);
  in_use_ = false;
}

bool RecordedGraph::DropIfIdle() {
  MutexLock lock(mu_);
  if (in_use_ || dropped_) return false;
  dropped_ = true;
  DestroyGraph();
  parts_ = RecordedParts();
  return true;
}

RecordedStep::Outcome RecordedGraph::Enqueue(std::span<const Tensor> args) {
  if (home_.resources.epoch() != epoch_ || !Begin()) return Outcome::kStale;
  auto places = VariableResource::Places::kMoved;
  staged_.clear();  // of a step whose card has failed
  try {
    for (const RecordedParts::Feed& feed : parts_.feeds) {
      const Tensor& value = args[feed.arg];
      const bool pins = value.space().is_host() && value.bytes() > 0;
      staged_.push_back(pins ? home_.pinned->Pinned(home_.card, value) : value);
    }
    places = VariableResource::RunAtPlaces(parts_.variables, [this] { Launch(); });
  } catch (...) {
    End();
    throw;
  }
  if (places == VariableResource::Places::kKept) return Outcome::kEnqueued;
  End();
  return places == VariableResource::Places::kShared ? Outcome::kNotNow : Outcome::kStale;
}

void RecordedGraph::Launch() {
  Driver& driver = home_.driver;
  const StreamHandle stream = home_.compute.handle();
  // The run before this one has ended, so nothing reads this memory now.
  for (const RecordedParts::Written& written : parts_.written) written.write(written.pinned);
  const MutexLock lock(home_.graphs->launch_mu());
  for (size_t i = 0; i < staged_.size(); ++i) {
    const Tensor& value = staged_[i];
    if (value.bytes() == 0) continue;
    const auto direction = value.space().is_host() ? Driver::Copy::kFromHost : Driver::Copy::kOnDevice;
    driver.CopyAsync(parts_.feeds[i].place.raw_data(), value.raw_data(), value.bytes(), direction, stream);
  }
  driver.LaunchGraph(graph_, stream);
}

Status RecordedGraph::Finish(std::span<Tensor> rets) {
  const uint64_t* const outcome = parts_.error();
  Status status = outcome == nullptr || outcome[0] == 0 ? Status() : ErrorOf(outcome);
  for (const RecordedParts::Fetch& fetch : parts_.fetches) {
    if (!status.ok()) break;
    if (fetch.pinned == nullptr) {
      rets[fetch.ret] = fetch.value.Clone();  // the caller may write into it
      continue;
    }
    Tensor value(fetch.dtype, fetch.shape);
    if (value.bytes() > 0) std::memcpy(value.raw_data(), fetch.pinned, value.bytes());
    rets[fetch.ret] = std::move(value);
  }
  End();
  return status;
}

Status RecordedGraph::ErrorOf(const uint64_t* outcome) const {
  const RecordedParts::Check& check = parts_.checks[static_cast<size_t>(outcome[0] >> kErrorPositionBits) - 1];
  const auto position = static_cast<int64_t>(outcome[0] & ((ErrorWord{1} << kErrorPositionBits) - 1));
  const Status described = check.describe(position, static_cast<int64_t>(outcome[1]));
  return {described.code(), StrCat(described.message(), "\n  ", check.where)};
}

}  // namespace cohort::cuda
