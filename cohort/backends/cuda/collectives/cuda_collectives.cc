// CudaCollectives. A collective has workers: some of the parts, on whose compute streams the work is enqueued. A worker
// waits until all inputs are ready (Begin), enqueues its copies and kernels, and records an event. When all workers
// have done so, the compute streams of all parts wait for these events (End). So outputs are valid, and the memory of
// inputs is free, in the order of each compute stream.
//
// In an all-reduce there is one worker for each card, and each reduces its share of the elements: it copies the shares
// of inputs on other cards to its own, joins them and the inputs of its card, and copies the result to the other cards.
#include "cohort/backends/cuda/collectives/cuda_collectives.h"

#include <algorithm>
#include <memory>

#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/kernels/combine.cu.h"
#include "cohort/backends/cuda/kernels/scratch.h"

namespace cohort::cuda {
namespace {

CudaDevice& CudaDeviceOfPart(const DevicePart& part) { return static_cast<CudaDevice&>(*part.device); }

CombineOp CombineOpOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return CombineOp::kSum;
    case ReduceOp::kProduct: return CombineOp::kProduct;
    case ReduceOp::kMin: return CombineOp::kMin;
    case ReduceOp::kMax: return CombineOp::kMax;
    case ReduceOp::kMean: return CombineOp::kMean;
  }
  throw InternalError(StrCat("[cuda/collectives] there is no reduction ", static_cast<int>(op)));
}

const char* At(const Tensor& tensor, int64_t element) {
  return static_cast<const char*>(tensor.raw_data()) + static_cast<size_t>(element) * DTypeSize(tensor.dtype());
}
// The outputs are new tensors, or inputs that may be overwritten.
char* MutableAt(const Tensor& tensor, int64_t element) { return const_cast<char*>(At(tensor, element)); }

using DeviceParts = std::vector<DevicePart>;

// The work of one collective.
class CollectiveWork {
 public:
  explicit CollectiveWork(const DeviceParts& parts) : parts_(parts) {}

  // Makes the compute stream of a part wait until all inputs are ready, and lets its card and the others copy to each
  // other directly. Returns the device.
  CudaDevice& Begin(size_t worker) const {
    CudaDevice& device = CudaDeviceOfPart(parts_[worker]);
    for (const DevicePart& part : parts_) {
      if (part.device != &device) device.compute_stream()->Wait(part.ready);
      const int peer = CudaDeviceOfPart(part).card();
      if (peer != device.card()) device.driver().EnablePeerAccess(device.card(), peer);
    }
    return device;
  }
  // Call it when the work of a worker is enqueued.
  void Enqueued(size_t worker) {
    done_.push_back({worker, CudaDeviceOfPart(parts_[worker]).compute_stream()->Record()});
  }
  void End() const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (const auto& [worker, event] : done_) {
        if (worker != i) CudaDeviceOfPart(parts_[i]).compute_stream()->Wait(event);
      }
    }
  }

  // Enqueues a copy of `count` elements of an input to `to`, which is in the memory of `device`.
  void Pull(CudaDevice& device, const Tensor& input, int64_t begin, int64_t count, void* to) const {
    device.driver().CopyAsync(to, At(input, begin), static_cast<size_t>(count) * DTypeSize(input.dtype()),
                              Driver::Copy::kOnDevice, device.compute_stream()->handle());
  }

  // Enqueues on the stream of `device` that the elements [begin, begin + count) of all inputs are joined to `outputs`.
  void Combine(CudaDevice& device, ReduceOp op, int64_t begin, int64_t count, const std::vector<void*>& outputs) const {
    const DType dtype = parts_[0].input.dtype();
    CombineArgs args;
    args.n = count;
    args.divisor = static_cast<int64_t>(parts_.size());
    std::vector<Tensor> pulled;  // are free again, in the order of the stream, when the work is enqueued
    for (const DevicePart& part : parts_) {
      const void* in = At(part.input, begin);
      if (CudaDeviceOfPart(part).card() != device.card()) {
        pulled.emplace_back(dtype, Shape{count}, device.allocator());
        in = pulled.back().raw_data();
        Pull(device, part.input, begin, count, pulled.back().raw_data());
      }
      args.in[args.inputs++] = in;
    }
    for (void* output : outputs) args.out[args.outputs++] = output;
    LaunchCombine(device.driver(), device.compute_stream()->handle(), CombineOpOf(op), ElementTypeOf(dtype), args);
  }

 private:
  struct Done {
    size_t worker;
    std::shared_ptr<StreamEvent> event;
  };
  const DeviceParts& parts_;
  std::vector<Done> done_;
};

// Returns the first part of each card.
std::vector<size_t> OnePerCard(const DeviceParts& parts) {
  std::vector<size_t> found;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool known = std::any_of(found.begin(), found.end(), [&](size_t j) {
      return CudaDeviceOfPart(parts[j]).card() == CudaDeviceOfPart(parts[i]).card();
    });
    if (!known) found.push_back(i);
  }
  return found;
}

}  // namespace

bool CudaCollectives::Serves(int members) const { return members <= CombineArgs::kMost; }

bool CudaCollectives::MayStillFail(const KernelContext& ctx) const {
  const StepError* const error = ctx.step().error;
  // First the word: it becomes null only after the error was set.
  return error != nullptr && (CudaDeviceOf(ctx).error_words().WordOf(ctx) != nullptr || error->set());
}

void CudaCollectives::AllReduce(ReduceOp op, const DeviceParts& parts) const {
  constexpr int64_t kAligned = 256;  // elements
  const std::vector<size_t> workers = OnePerCard(parts);
  const int64_t n = parts[0].input.num_elements();
  const auto cards = static_cast<int64_t>(workers.size());
  const int64_t share = ((n + cards - 1) / cards + kAligned - 1) / kAligned * kAligned;
  CollectiveWork work(parts);
  for (size_t w = 0; w < workers.size(); ++w) {
    CudaDevice& device = work.Begin(workers[w]);
    const int64_t begin = std::min(n, static_cast<int64_t>(w) * share);
    const int64_t count = std::min(n - begin, share);
    if (count > 0) {
      std::vector<void*> outputs;
      for (const DevicePart& part : parts) {
        if (CudaDeviceOfPart(part).card() == device.card()) outputs.push_back(MutableAt(part.output, begin));
      }
      work.Combine(device, op, begin, count, outputs);
      for (const DevicePart& part : parts) {
        if (CudaDeviceOfPart(part).card() == device.card()) continue;
        device.driver().CopyAsync(MutableAt(part.output, begin), outputs[0],
                                  static_cast<size_t>(count) * DTypeSize(part.output.dtype()), Driver::Copy::kOnDevice,
                                  device.compute_stream()->handle());
      }
    }
    work.Enqueued(workers[w]);
  }
  work.End();
}

void CudaCollectives::ReduceScatter(ReduceOp op, const DeviceParts& parts) const {
  const int64_t share = parts[0].output.num_elements();
  CollectiveWork work(parts);
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    CudaDevice& device = work.Begin(rank);
    if (share > 0) {
      work.Combine(device, op, static_cast<int64_t>(rank) * share, share, {MutableAt(parts[rank].output, 0)});
    }
    work.Enqueued(rank);
  }
  work.End();
}

void CudaCollectives::AllGather(const DeviceParts& parts) const {
  const int64_t each = parts[0].input.num_elements();
  CollectiveWork work(parts);
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    CudaDevice& device = work.Begin(rank);
    for (size_t from = 0; from < parts.size() && each > 0; ++from) {
      work.Pull(device, parts[from].input, 0, each, MutableAt(parts[rank].output, static_cast<int64_t>(from) * each));
    }
    work.Enqueued(rank);
  }
  work.End();
}

void CudaCollectives::Broadcast(int root, const DeviceParts& parts) const {
  const Tensor& value = parts[static_cast<size_t>(root)].input;
  CollectiveWork work(parts);
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    if (static_cast<int>(rank) == root) continue;
    CudaDevice& device = work.Begin(rank);
    if (value.num_elements() > 0) {
      work.Pull(device, value, 0, value.num_elements(), MutableAt(parts[rank].output, 0));
    }
    work.Enqueued(rank);
  }
  work.End();
}

}  // namespace cohort::cuda
