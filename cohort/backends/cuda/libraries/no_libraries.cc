// MakeBlas, MakeDnn and MakeNccl of a build without CUDA: objects that throw. They are never called unless a program
// has devices of a driver that has been installed without libraries.
#include "cohort/backends/cuda/libraries/blas.h"
#include "cohort/backends/cuda/libraries/dnn.h"
#include "cohort/backends/cuda/libraries/nccl.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

[[noreturn]] void ThrowAbsent(const char* library) {
  throw UnimplementedError(StrCat("[cuda/libraries] expected a build with CUDA for calls of ", library,
                                  "; got one without: configure it with -DCOHORT_WITH_CUDA=ON"));
}

class NoBlas final : public Blas {
 public:
  LibraryName Name() override { ThrowAbsent("cuBLASLt"); }
  std::vector<Algorithm> Candidates(int, const GemmSpec&, size_t) override { ThrowAbsent("cuBLASLt"); }
  std::optional<Algorithm> Check(int, const GemmSpec&, const Algorithm&) override { ThrowAbsent("cuBLASLt"); }
  void Gemm(int, StreamHandle, const GemmSpec&, const GemmOperands&, const Algorithm&, void*) override {
    ThrowAbsent("cuBLASLt");
  }
};

class NoDnn final : public Dnn {
 public:
  LibraryName Name() override { ThrowAbsent("cuDNN"); }
  std::vector<Algorithm> Candidates(int, ConvolutionPart, const DnnConvolution&, size_t) override {
    ThrowAbsent("cuDNN");
  }
  std::optional<Algorithm> Check(int, ConvolutionPart, const DnnConvolution&, const Algorithm&) override {
    ThrowAbsent("cuDNN");
  }
  void Compute(int, StreamHandle, ConvolutionPart, const DnnConvolution&, const DnnOperands&, const Algorithm&,
               void*) override {
    ThrowAbsent("cuDNN");
  }
};

class NoNccl final : public Nccl {
 public:
  int Version() override { ThrowAbsent("NCCL"); }
  std::string UniqueId() override { ThrowAbsent("NCCL"); }
  NcclResult Init(int, const std::string&, int, int, NcclComm*) override { ThrowAbsent("NCCL"); }
  NcclResult AllReduce(NcclComm, const void*, void*, size_t, NcclType, NcclOp, StreamHandle) override {
    ThrowAbsent("NCCL");
  }
  NcclResult Broadcast(NcclComm, const void*, void*, size_t, NcclType, int, StreamHandle) override {
    ThrowAbsent("NCCL");
  }
  NcclResult AllGather(NcclComm, const void*, void*, size_t, NcclType, StreamHandle) override { ThrowAbsent("NCCL"); }
  NcclResult State(NcclComm) override { ThrowAbsent("NCCL"); }
  NcclResult Abort(NcclComm) override { ThrowAbsent("NCCL"); }
};

}  // namespace

std::unique_ptr<Blas> MakeBlas() { return std::make_unique<NoBlas>(); }
std::unique_ptr<Dnn> MakeDnn() { return std::make_unique<NoDnn>(); }
std::unique_ptr<Nccl> MakeNccl() { return std::make_unique<NoNccl>(); }

}  // namespace cohort::cuda
