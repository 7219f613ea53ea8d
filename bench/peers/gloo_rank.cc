#include "bench/peers/gloo_rank.h"

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

namespace all_reduce {
namespace {

class GlooRank final : public Rank {
 public:
  GlooRank(const std::string& algorithm, int rank, int size, const std::string& store) : algorithm_(algorithm) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore files(store);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->connectFullMesh(files, device);
    context_ = context;
  }

  void Prepare(const std::vector<int64_t>& counts) override {
    older_.clear();
    vectors_.clear();
    for (const int64_t count : counts) {
      vectors_.emplace_back(static_cast<size_t>(count));
      const std::vector<float*> pointers = {vectors_.back().data()};
      if (algorithm_ == "ring_chunked") {
        older_.push_back(
            std::make_unique<gloo::AllreduceRingChunked<float>>(context_, pointers, static_cast<int>(count)));
      } else if (algorithm_ == "halving_doubling") {
        older_.push_back(
            std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context_, pointers, static_cast<int>(count)));
      }
    }
  }
  float* data(size_t vector) override { return vectors_[vector].data(); }
  void Barrier() override {
    gloo::BarrierOptions options(context_);
    options.setTag(1);
    gloo::barrier(options);
  }
  void AllReduce(size_t vector) override {
    if (!older_.empty()) return older_[vector]->run();
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(algorithm_ == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                               : gloo::AllreduceOptions::Algorithm::RING);
    options.setOutput(vectors_[vector].data(), vectors_[vector].size());
    options.setReduceFunction(
        [](void* sum, const void* a, const void* b, size_t count) { gloo::sum<float>(sum, a, b, count); });
    options.setTag(2);
    gloo::allreduce(options);
  }

 private:
  const std::string algorithm_;
  std::shared_ptr<gloo::Context> context_;
  std::vector<std::vector<float>> vectors_;
  std::vector<std::unique_ptr<gloo::Algorithm>> older_;
};

}  // namespace

std::vector<std::string> GlooAlgorithms() { return {"ring", "bcube", "ring_chunked", "halving_doubling"}; }

std::unique_ptr<Rank> MakeGlooRank(const std::string& algorithm, int rank, int size, const std::string& store) {
  return std::make_unique<GlooRank>(algorithm, rank, size, store);
}

}  // namespace all_reduce
