// RecordedGraph: a recorded step as a CUDA graph. RecordedGraphs: those of one device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cohort/backends/cuda/cuda_stream.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/pinned_pool.h"
#include "cohort/backends/cuda/recording/cuda_recording.h"
#include "cohort/core/mutex.h"
#include "cohort/device/recorded_step.h"
#include "cohort/device/resource.h"

namespace cohort::cuda {

class RecordedGraph;

// The recorded graphs of one device. They share memory for the values inside of a step, and give it up if it is wanted
// elsewhere. The device's recorder, its memory and the graphs share ownership. Thread-safe.
class RecordedGraphs {
 public:
  void Add(RecordedGraph* graph);
  void Remove(RecordedGraph* graph);
  // Makes all graphs that no step uses now let go of what they hold. Returns whether there was one. Must not be called
  // under the lock of the device's memory.
  bool DropIdle();
  // Is held from the first copy of a feed to the launch of the graph, because graphs share the places of feeds.
  Mutex& launch_mu() { return launch_mu_; }

 private:
  Mutex launch_mu_;
  Mutex mu_;
  std::vector<RecordedGraph*> graphs_ COHORT_GUARDED_BY(mu_);
};

// A captured graph with what it needs. If its memory was wanted elsewhere (RecordedGraphs::DropIdle), it is stale.
class RecordedGraph final : public RecordedStep {
 public:
  // What all graphs of a device have in common.
  struct Home {
    Driver& driver;
    int card;
    CudaStream& compute;
    ResourceManager& resources;
    std::shared_ptr<PinnedPool> pinned;
    std::shared_ptr<RecordedGraphs> graphs;
  };
  // Takes over the graph. `epoch` is that of the resources before the step was recorded.
  RecordedGraph(const Home& home, GraphHandle graph, RecordedParts parts, int64_t epoch);
  ~RecordedGraph() override;

  Outcome Enqueue(std::span<const Tensor> args) override;
  Status Finish(std::span<Tensor> rets) override;

 private:
  friend class RecordedGraphs;
  // Says that a step uses the graph from now on. Returns false if it has been dropped.
  bool Begin();
  void End();
  // Lets go of graph and memory if no step uses them.
  bool DropIfIdle();
  void DestroyGraph();
  void Launch();
  Status ErrorOf(const uint64_t* outcome) const;

  const Home home_;
  const int64_t epoch_;
  Mutex mu_;
  bool in_use_ COHORT_GUARDED_BY(mu_) = false;
  bool dropped_ COHORT_GUARDED_BY(mu_) = false;
  // Belong to the step that uses the graph, or else to DropIfIdle.
  GraphHandle graph_;
  RecordedParts parts_;
  std::vector<Tensor> staged_;  // the feeds of the step
};

}  // namespace cohort::cuda
