// MakeDnn of a build with CUDA: cuDNN 9, by its functions for convolutions. Cudnn opens the library at the first call,
// makes one handle for each card, and keeps a plan (descriptors) for each part of each convolution. The first word of
// an Algorithm is its number in the enumeration of the part, and the second is the math type. Images and filters are
// NHWC, so cuDNN transforms nothing.
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/cudart_status.h"
#include "cohort/backends/cuda/libraries/dnn.h"
#include "cohort/backends/cuda/libraries/dynamic_library.h"
#include "cohort/backends/cuda/libraries/library_requests.h"
#include "cohort/backends/cuda/libraries/nvrtc.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

// An algorithm that needs more scratch memory is taken only if there is no other.
constexpr size_t kMuchWorkspace = size_t{512} << 20;
// A program with more convolutions than this makes plans anew.
constexpr size_t kMostPlans = 4096;

// The functions of the library that we call.
struct Functions {
  explicit Functions(const DynamicLibrary& library)
#define COHORT_FUNCTION(name) name(library.Get<decltype(::name)>(#name))
      : COHORT_FUNCTION(cudnnConvolutionBackwardData),
        COHORT_FUNCTION(cudnnConvolutionBackwardFilter),
        COHORT_FUNCTION(cudnnConvolutionForward),
        COHORT_FUNCTION(cudnnCreate),
        COHORT_FUNCTION(cudnnCreateConvolutionDescriptor),
        COHORT_FUNCTION(cudnnCreateFilterDescriptor),
        COHORT_FUNCTION(cudnnCreateTensorDescriptor),
        COHORT_FUNCTION(cudnnDestroyConvolutionDescriptor),
        COHORT_FUNCTION(cudnnDestroyFilterDescriptor),
        COHORT_FUNCTION(cudnnDestroyTensorDescriptor),
        COHORT_FUNCTION(cudnnGetConvolutionBackwardDataAlgorithm_v7),
        COHORT_FUNCTION(cudnnGetConvolutionBackwardDataWorkspaceSize),
        COHORT_FUNCTION(cudnnGetConvolutionBackwardFilterAlgorithm_v7),
        COHORT_FUNCTION(cudnnGetConvolutionBackwardFilterWorkspaceSize),
        COHORT_FUNCTION(cudnnGetConvolutionForwardAlgorithm_v7),
        COHORT_FUNCTION(cudnnGetConvolutionForwardWorkspaceSize),
        COHORT_FUNCTION(cudnnGetErrorString),
        COHORT_FUNCTION(cudnnGetVersion),
        COHORT_FUNCTION(cudnnSetConvolution2dDescriptor),
        COHORT_FUNCTION(cudnnSetConvolutionGroupCount),
        COHORT_FUNCTION(cudnnSetConvolutionMathType),
        COHORT_FUNCTION(cudnnSetFilter4dDescriptor),
        COHORT_FUNCTION(cudnnSetStream),
        COHORT_FUNCTION(cudnnSetTensor4dDescriptor),
        last_error(library.Find<decltype(::cudnnGetLastErrorString)>("cudnnGetLastErrorString")) {
  }
#undef COHORT_FUNCTION
#define COHORT_FUNCTION(name) decltype(::name)* const name
  COHORT_FUNCTION(cudnnConvolutionBackwardData);
  COHORT_FUNCTION(cudnnConvolutionBackwardFilter);
  COHORT_FUNCTION(cudnnConvolutionForward);
  COHORT_FUNCTION(cudnnCreate);
  COHORT_FUNCTION(cudnnCreateConvolutionDescriptor);
  COHORT_FUNCTION(cudnnCreateFilterDescriptor);
  COHORT_FUNCTION(cudnnCreateTensorDescriptor);
  COHORT_FUNCTION(cudnnDestroyConvolutionDescriptor);
  COHORT_FUNCTION(cudnnDestroyFilterDescriptor);
  COHORT_FUNCTION(cudnnDestroyTensorDescriptor);
  COHORT_FUNCTION(cudnnGetConvolutionBackwardDataAlgorithm_v7);
  COHORT_FUNCTION(cudnnGetConvolutionBackwardDataWorkspaceSize);
  COHORT_FUNCTION(cudnnGetConvolutionBackwardFilterAlgorithm_v7);
  COHORT_FUNCTION(cudnnGetConvolutionBackwardFilterWorkspaceSize);
  COHORT_FUNCTION(cudnnGetConvolutionForwardAlgorithm_v7);
  COHORT_FUNCTION(cudnnGetConvolutionForwardWorkspaceSize);
  COHORT_FUNCTION(cudnnGetErrorString);
  COHORT_FUNCTION(cudnnGetVersion);
  COHORT_FUNCTION(cudnnSetConvolution2dDescriptor);
  COHORT_FUNCTION(cudnnSetConvolutionGroupCount);
  COHORT_FUNCTION(cudnnSetConvolutionMathType);
  COHORT_FUNCTION(cudnnSetFilter4dDescriptor);
  COHORT_FUNCTION(cudnnSetStream);
  COHORT_FUNCTION(cudnnSetTensor4dDescriptor);
#undef COHORT_FUNCTION
  decltype(::cudnnGetLastErrorString)* const last_error;  // may be null
};

// cuDNN counts in 32 bits.
int Int(int64_t value) {
  if (value <= std::numeric_limits<int>::max()) return static_cast<int>(value);
  throw UnimplementedError(StrCat("[cuda/libraries] expected sizes below 2^31 for cuDNN; got ", value));
}

// The math type with which algorithms are looked for.
cudnnMathType_t MathTypeOf(const DnnConvolution& c) {
  if (c.dtype == DType::kBfloat16) return CUDNN_TENSOR_OP_MATH;
  return c.tensor_float_32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

// The descriptors of one part of a convolution. Cudnn owns it.
struct Plan {
  cudnnTensorDescriptor_t input = nullptr;
  cudnnTensorDescriptor_t output = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
};

// The words of an Algorithm.
template <typename Number>
Number NumberOf(const Algorithm& algorithm) {
  return static_cast<Number>(algorithm.words[0]);
}
cudnnMathType_t MathTypeOf(const Algorithm& algorithm) { return static_cast<cudnnMathType_t>(algorithm.words[1]); }

// Without memory a step fails as it does if a tensor finds none, and a later one may succeed.
Code CodeOf(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED: return Code::kResourceExhausted;
    default: return Code::kInternal;
  }
}

class Cudnn final : public Dnn {
 public:
  LibraryName Name() override {
    MutexLock lock(mu_);
    Open();
    return {"cuDNN", VersionText(functions_->cudnnGetVersion())};
  }

  std::vector<Algorithm> Candidates(int card, ConvolutionPart part, const DnnConvolution& convolution,
                                    size_t most) override {
    MutexLock lock(mu_);
    std::vector<Algorithm> candidates = DeterministicOnes(card, part, convolution);
    if (candidates.size() > most) candidates.resize(most);
    return candidates;
  }

  std::optional<Algorithm> Check(int card, ConvolutionPart part, const DnnConvolution& convolution,
                                 const Algorithm& algorithm) override {
    MutexLock lock(mu_);
    for (const Algorithm& offered : DeterministicOnes(card, part, convolution)) {
      if (offered.words == algorithm.words) return offered;
    }
    return std::nullopt;
  }

  void Compute(int card, StreamHandle stream, ConvolutionPart part, const DnnConvolution& convolution,
               const DnnOperands& operands, const Algorithm& algorithm, void* workspace) override {
    MutexLock lock(mu_);  // a handle has a stream, and a plan a math type, which each call sets
    const Plan& p = PlanOf(card, part, convolution);
    const cudnnHandle_t handle = HandleOf(card);
    const auto check = [&](const char* call, cudnnStatus_t status)
                           COHORT_REQUIRES(mu_) { Check(call, status, part, convolution); };
    check("cudnnSetStream", functions_->cudnnSetStream(handle, static_cast<cudaStream_t>(stream.native)));
    SetMathType(MathTypeOf(algorithm), part, convolution, p);
    const float one = 1, zero = 0;
    const size_t bytes = algorithm.workspace;
    switch (part) {
      case ConvolutionPart::kOutput:
        return check("cudnnConvolutionForward", functions_->cudnnConvolutionForward(
                                                    handle, &one, p.input, operands.input, p.filter, operands.filter,
                                                    p.convolution, NumberOf<cudnnConvolutionFwdAlgo_t>(algorithm),
                                                    workspace, bytes, &zero, p.output, operands.output));
      case ConvolutionPart::kInputGradient:
        return check(
            "cudnnConvolutionBackwardData",
            functions_->cudnnConvolutionBackwardData(handle, &one, p.filter, operands.filter, p.output, operands.output,
                                                     p.convolution, NumberOf<cudnnConvolutionBwdDataAlgo_t>(algorithm),
                                                     workspace, bytes, &zero, p.input, operands.input));
      case ConvolutionPart::kFilterGradient:
        return check("cudnnConvolutionBackwardFilter",
                     functions_->cudnnConvolutionBackwardFilter(handle, &one, p.input, operands.input, p.output,
                                                                operands.output, p.convolution,
                                                                NumberOf<cudnnConvolutionBwdFilterAlgo_t>(algorithm),
                                                                workspace, bytes, &zero, p.filter, operands.filter));
    }
  }

 private:
  using Key = std::tuple<int, ConvolutionPart, DnnConvolution>;

  void Check(const char* call, cudnnStatus_t status, ConvolutionPart part, const DnnConvolution& convolution) const
      COHORT_REQUIRES(mu_) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    std::array<char, 1024> why{};
    if (functions_->last_error != nullptr) functions_->last_error(why.data(), why.size());
    ThrowError(CodeOf(status), StrCat("[cuda/libraries] expected ", call, " to succeed; got ",
                                      functions_->cudnnGetErrorString(status), why[0] == 0 ? "" : " (", why.data(),
                                      why[0] == 0 ? "" : ")", " for ", CallText(part, convolution)));
  }

  void Open() COHORT_REQUIRES(mu_) {
    if (functions_) return;
    OpenNvrtcIfItIsThere();
    functions_.emplace(DynamicLibrary::Open(CudnnRequest(CUDNN_MAJOR), CudaLibraryFolders()));
  }

  // Makes the card the thread's current one, which the library's calls need.
  cudnnHandle_t HandleOf(int card) COHORT_REQUIRES(mu_) {
    Open();
    CudartStatus("cudaSetDevice", card, cudaSetDevice(card)).ThrowIfError();
    cudnnHandle_t& handle = handles_[card];
    if (handle == nullptr) {
      const cudnnStatus_t status = functions_->cudnnCreate(&handle);
      if (status != CUDNN_STATUS_SUCCESS) {
        ThrowError(CodeOf(status), StrCat("[cuda/libraries] expected cudnnCreate to succeed on card ", card, "; got ",
                                          functions_->cudnnGetErrorString(status)));
      }
    }
    return handle;
  }

  const Plan& PlanOf(int card, ConvolutionPart part, const DnnConvolution& convolution) COHORT_REQUIRES(mu_) {
    const Key key(card, part, convolution);
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    if (plans_.size() == kMostPlans) {
      for (const auto& [old_key, old] : plans_) Release(old);
      plans_.clear();
    }
    Plan plan;
    try {
      HandleOf(card);
      MakeDescriptors(part, convolution, plan);
    } catch (...) {
      Release(plan);
      throw;
    }
    return plans_.emplace(key, plan).first->second;
  }

  void MakeDescriptors(ConvolutionPart part, const DnnConvolution& c, Plan& plan) COHORT_REQUIRES(mu_) {
    const Functions& f = *functions_;
    const auto check = [&](const char* call, cudnnStatus_t status)
                           COHORT_REQUIRES(mu_) { Check(call, status, part, c); };
    const cudnnDataType_t type = c.dtype == DType::kBfloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    check("cudnnCreateTensorDescriptor", f.cudnnCreateTensorDescriptor(&plan.input));
    check("cudnnCreateTensorDescriptor", f.cudnnCreateTensorDescriptor(&plan.output));
    check("cudnnCreateFilterDescriptor", f.cudnnCreateFilterDescriptor(&plan.filter));
    check("cudnnCreateConvolutionDescriptor", f.cudnnCreateConvolutionDescriptor(&plan.convolution));
    check("cudnnSetTensor4dDescriptor",
          f.cudnnSetTensor4dDescriptor(plan.input, CUDNN_TENSOR_NHWC, type, Int(c.batch), Int(c.in_channels),
                                       Int(c.in_size[0]), Int(c.in_size[1])));
    check("cudnnSetTensor4dDescriptor",
          f.cudnnSetTensor4dDescriptor(plan.output, CUDNN_TENSOR_NHWC, type, Int(c.batch), Int(c.out_channels),
                                       Int(c.out_size[0]), Int(c.out_size[1])));
    check("cudnnSetFilter4dDescriptor",
          f.cudnnSetFilter4dDescriptor(plan.filter, type, CUDNN_TENSOR_NHWC, Int(c.out_channels),
                                       Int(c.in_channels / c.groups), Int(c.filter_size[0]), Int(c.filter_size[1])));
    check("cudnnSetConvolution2dDescriptor",
          f.cudnnSetConvolution2dDescriptor(plan.convolution, Int(c.padding[0]), Int(c.padding[1]), Int(c.strides[0]),
                                            Int(c.strides[1]), Int(c.dilations[0]), Int(c.dilations[1]),
                                            CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    check("cudnnSetConvolutionGroupCount", f.cudnnSetConvolutionGroupCount(plan.convolution, Int(c.groups)));
    check("cudnnSetConvolutionMathType", f.cudnnSetConvolutionMathType(plan.convolution, MathTypeOf(c)));
  }

  // Returns the deterministic algorithms, in the order of the heuristics. Those that need much scratch memory come
  // last, beginning with the one that needs least.
  std::vector<Algorithm> DeterministicOnes(int card, ConvolutionPart part, const DnnConvolution& c)
      COHORT_REQUIRES(mu_) {
    const Plan& plan = PlanOf(card, part, c);
    const cudnnHandle_t handle = HandleOf(card);
    const Functions& f = *functions_;
    SetMathType(MathTypeOf(c), part, c, plan);  // an earlier call may have set another
    std::vector<Algorithm> ones;
    int count = 0;
    switch (part) {
      case ConvolutionPart::kOutput: {
        std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> found{};
        Check("cudnnGetConvolutionForwardAlgorithm_v7",
              f.cudnnGetConvolutionForwardAlgorithm_v7(handle, plan.input, plan.filter, plan.convolution, plan.output,
                                                       static_cast<int>(found.size()), &count, found.data()),
              part, c);
        AddOnes(found, count, part, c, plan, ones, [&](auto algorithm, size_t* bytes) {
          return f.cudnnGetConvolutionForwardWorkspaceSize(handle, plan.input, plan.filter, plan.convolution,
                                                           plan.output, algorithm, bytes);
        });
        break;
      }
      case ConvolutionPart::kInputGradient: {
        std::array<cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT> found{};
        Check("cudnnGetConvolutionBackwardDataAlgorithm_v7",
              f.cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, plan.filter, plan.output, plan.convolution,
                                                            plan.input, static_cast<int>(found.size()), &count,
                                                            found.data()),
              part, c);
        AddOnes(found, count, part, c, plan, ones, [&](auto algorithm, size_t* bytes) {
          return f.cudnnGetConvolutionBackwardDataWorkspaceSize(handle, plan.filter, plan.output, plan.convolution,
                                                                plan.input, algorithm, bytes);
        });
        break;
      }
      case ConvolutionPart::kFilterGradient: {
        std::array<cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT> found{};
        Check("cudnnGetConvolutionBackwardFilterAlgorithm_v7",
              f.cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, plan.input, plan.output, plan.convolution,
                                                              plan.filter, static_cast<int>(found.size()), &count,
                                                              found.data()),
              part, c);
        AddOnes(found, count, part, c, plan, ones, [&](auto algorithm, size_t* bytes) {
          return f.cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, plan.input, plan.output, plan.convolution,
                                                                  plan.filter, algorithm, bytes);
        });
        break;
      }
    }
    const auto much = [](const Algorithm& a) { return a.workspace <= kMuchWorkspace ? 0 : a.workspace; };
    std::stable_sort(ones.begin(), ones.end(),
                     [&](const Algorithm& a, const Algorithm& b) { return much(a) < much(b); });
    return ones;
  }

  // `workspace` says how much scratch memory an algorithm needs, and fails for one that does not fit the descriptors.
  template <typename Found, typename Workspace>
  void AddOnes(const Found& found, int count, ConvolutionPart part, const DnnConvolution& c, const Plan& plan,
               std::vector<Algorithm>& ones, const Workspace& workspace) COHORT_REQUIRES(mu_) {
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const auto& option = found[i];
      if (option.status != CUDNN_STATUS_SUCCESS || option.determinism != CUDNN_DETERMINISTIC) continue;
      // The default would allow TensorFloat-32.
      const cudnnMathType_t math = MathTypeOf(c) == CUDNN_FMA_MATH ? CUDNN_FMA_MATH : option.mathType;
      SetMathType(math, part, c, plan);
      Algorithm one;
      if (workspace(option.algo, &one.workspace) != CUDNN_STATUS_SUCCESS) continue;
      one.words[0] = static_cast<uint64_t>(option.algo);
      one.words[1] = static_cast<uint64_t>(math);
      const auto is_same = [&](const Algorithm& other) { return other.words == one.words; };
      if (std::none_of(ones.begin(), ones.end(), is_same)) ones.push_back(one);
    }
  }

  void SetMathType(cudnnMathType_t math, ConvolutionPart part, const DnnConvolution& c, const Plan& plan)
      COHORT_REQUIRES(mu_) {
    Check("cudnnSetConvolutionMathType", functions_->cudnnSetConvolutionMathType(plan.convolution, math), part, c);
  }

  void Release(const Plan& plan) COHORT_REQUIRES(mu_) {
    const Functions& f = *functions_;
    if (plan.input != nullptr) f.cudnnDestroyTensorDescriptor(plan.input);
    if (plan.output != nullptr) f.cudnnDestroyTensorDescriptor(plan.output);
    if (plan.filter != nullptr) f.cudnnDestroyFilterDescriptor(plan.filter);
    if (plan.convolution != nullptr) f.cudnnDestroyConvolutionDescriptor(plan.convolution);
  }

  Mutex mu_;
  std::optional<Functions> functions_ COHORT_GUARDED_BY(mu_);
  std::map<int, cudnnHandle_t> handles_ COHORT_GUARDED_BY(mu_);
  std::map<Key, Plan> plans_ COHORT_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<Dnn> MakeDnn() { return std::make_unique<Cudnn>(); }

}  // namespace cohort::cuda
