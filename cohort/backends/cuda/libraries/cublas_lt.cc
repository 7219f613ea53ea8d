// MakeBlas of a build with CUDA: cuBLASLt. CublasLt opens the library at the first call, makes one handle for each
// card, and keeps a plan (descriptors) for each spec. The words of an Algorithm are those of cuBLASLt's own, which
// NVIDIA lets programs store for the same version of the library. cuBLASLt's matrices are column-major. A
// row-major matrix [rows, columns] is the column-major matrix [columns, rows], so cuBLASLt is asked for c^T = b'^T
// a'^T: its first operand is our b, and its second is our a.
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/cudart_status.h"
#include "cohort/backends/cuda/libraries/blas.h"
#include "cohort/backends/cuda/libraries/dynamic_library.h"
#include "cohort/backends/cuda/libraries/library_requests.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

// The most scratch memory that an algorithm may use. NVIDIA recommends as much for Hopper.
constexpr size_t kMostWorkspace = size_t{32} << 20;

// A program with more shapes than this makes plans anew.
constexpr size_t kMostPlans = 4096;

// The functions of the library that we call.
struct Functions {
  explicit Functions(const DynamicLibrary& library)
#define COHORT_FUNCTION(name) name(library.Get<decltype(::name)>(#name))
      : COHORT_FUNCTION(cublasLtCreate),
        COHORT_FUNCTION(cublasLtGetStatusName),
        COHORT_FUNCTION(cublasLtGetVersion),
        COHORT_FUNCTION(cublasLtMatmul),
        COHORT_FUNCTION(cublasLtMatmulAlgoCapGetAttribute),
        COHORT_FUNCTION(cublasLtMatmulAlgoCheck),
        COHORT_FUNCTION(cublasLtMatmulAlgoConfigGetAttribute),
        COHORT_FUNCTION(cublasLtMatmulAlgoGetHeuristic),
        COHORT_FUNCTION(cublasLtMatmulDescCreate),
        COHORT_FUNCTION(cublasLtMatmulDescDestroy),
        COHORT_FUNCTION(cublasLtMatmulDescSetAttribute),
        COHORT_FUNCTION(cublasLtMatmulPreferenceCreate),
        COHORT_FUNCTION(cublasLtMatmulPreferenceDestroy),
        COHORT_FUNCTION(cublasLtMatmulPreferenceSetAttribute),
        COHORT_FUNCTION(cublasLtMatrixLayoutCreate),
        COHORT_FUNCTION(cublasLtMatrixLayoutDestroy),
        COHORT_FUNCTION(cublasLtMatrixLayoutSetAttribute) {
  }
#undef COHORT_FUNCTION
#define COHORT_FUNCTION(name) decltype(::name)* const name
  COHORT_FUNCTION(cublasLtCreate);
  COHORT_FUNCTION(cublasLtGetStatusName);
  COHORT_FUNCTION(cublasLtGetVersion);
  COHORT_FUNCTION(cublasLtMatmul);
  COHORT_FUNCTION(cublasLtMatmulAlgoCapGetAttribute);
  COHORT_FUNCTION(cublasLtMatmulAlgoCheck);
  COHORT_FUNCTION(cublasLtMatmulAlgoConfigGetAttribute);
  COHORT_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  COHORT_FUNCTION(cublasLtMatmulDescCreate);
  COHORT_FUNCTION(cublasLtMatmulDescDestroy);
  COHORT_FUNCTION(cublasLtMatmulDescSetAttribute);
  COHORT_FUNCTION(cublasLtMatmulPreferenceCreate);
  COHORT_FUNCTION(cublasLtMatmulPreferenceDestroy);
  COHORT_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
  COHORT_FUNCTION(cublasLtMatrixLayoutCreate);
  COHORT_FUNCTION(cublasLtMatrixLayoutDestroy);
  COHORT_FUNCTION(cublasLtMatrixLayoutSetAttribute);
#undef COHORT_FUNCTION
};

struct Types {
  cudaDataType_t data;
  cudaDataType_t scale;
  cublasComputeType_t compute;
};

Types TypesOf(const GemmSpec& s) {
  switch (s.dtype) {
    case DType::kFloat64: return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::kFloat32:
      return {CUDA_R_32F, CUDA_R_32F, s.tensor_float_32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
    case DType::kBfloat16: return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    default:
      throw InternalError(StrCat("[cuda/libraries] expected float32, float64 or bfloat16 for cuBLASLt; got ", s.dtype));
  }
}

// Without memory a step fails as it does if a tensor finds none, and a later one may succeed.
Code CodeOf(cublasStatus_t status) {
  return status == CUBLAS_STATUS_ALLOC_FAILED ? Code::kResourceExhausted : Code::kInternal;
}

cublasLtEpilogue_t EpilogueOf(GemmEnd end) {
  switch (end) {
    case GemmEnd::kBias: return CUBLASLT_EPILOGUE_BIAS;
    case GemmEnd::kBiasRelu: return CUBLASLT_EPILOGUE_RELU_BIAS;
    default: return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(Algorithm::words));

cublasLtMatmulAlgo_t NativeOf(const Algorithm& algorithm) {
  cublasLtMatmulAlgo_t native;
  std::memcpy(&native, algorithm.words.data(), sizeof(native));
  return native;
}

Algorithm AlgorithmOf(const cublasLtMatmulHeuristicResult_t& result) {
  Algorithm algorithm;
  std::memcpy(algorithm.words.data(), &result.algo, sizeof(result.algo));
  algorithm.workspace = result.workspaceSize;
  return algorithm;
}

// The descriptors of one spec. CublasLt owns it.
struct Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr;   // b
  cublasLtMatrixLayout_t second = nullptr;  // a
  cublasLtMatrixLayout_t result = nullptr;  // c
};

class CublasLt final : public Blas {
 public:
  LibraryName Name() override {
    MutexLock lock(mu_);
    Open();
    return {"cuBLASLt", VersionText(functions_->cublasLtGetVersion())};
  }

  std::vector<Algorithm> Candidates(int card, const GemmSpec& spec, size_t most) override {
    MutexLock lock(mu_);
    std::vector<Algorithm> candidates;
    for (const cublasLtMatmulHeuristicResult_t& result : AskHeuristics(card, spec, most)) {
      if (result.state == CUBLAS_STATUS_SUCCESS) candidates.push_back(AlgorithmOf(result));
    }
    return candidates;
  }

  std::optional<Algorithm> Check(int card, const GemmSpec& spec, const Algorithm& algorithm) override {
    MutexLock lock(mu_);
    const Plan& plan = PlanOf(card, spec);
    const cublasLtMatmulAlgo_t native = NativeOf(algorithm);
    cublasLtMatmulHeuristicResult_t result = {};
    const cublasStatus_t status = functions_->cublasLtMatmulAlgoCheck(
        HandleOf(card), plan.operation, plan.first, plan.second, plan.result, plan.result, &native, &result);
    if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kMostWorkspace) return std::nullopt;
    uint32_t scheme = 0;
    size_t written = 0;
    if (functions_->cublasLtMatmulAlgoConfigGetAttribute(&native, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                                         sizeof(scheme), &written) != CUBLAS_STATUS_SUCCESS ||
        (scheme & CUBLASLT_REDUCTION_SCHEME_INPLACE) != 0 || !TakesAlignment(native, spec.alignment)) {
      return std::nullopt;
    }
    Algorithm checked = algorithm;
    checked.workspace = result.workspaceSize;
    return checked;
  }

  void Gemm(int card, StreamHandle stream, const GemmSpec& spec, const GemmOperands& operands,
            const Algorithm& algorithm, void* workspace) override {
    MutexLock lock(mu_);  // a plan has the address of the bias, which each call sets
    const Plan& plan = PlanOf(card, spec);
    if (spec.end != GemmEnd::kPlain) {
      Check("cublasLtMatmulDescSetAttribute", spec,
            functions_->cublasLtMatmulDescSetAttribute(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                       &operands.bias, sizeof(operands.bias)));
    }
    const float one = 1, zero = 0;
    const double one64 = 1, zero64 = 0;
    const bool is64 = spec.dtype == DType::kFloat64;
    const cublasLtMatmulAlgo_t native = NativeOf(algorithm);
    Check("cublasLtMatmul", spec,
          functions_->cublasLtMatmul(HandleOf(card), plan.operation, is64 ? static_cast<const void*>(&one64) : &one,
                                     operands.b, plan.first, operands.a, plan.second,
                                     is64 ? static_cast<const void*>(&zero64) : &zero, operands.c, plan.result,
                                     operands.c, plan.result, &native, workspace, algorithm.workspace,
                                     static_cast<cudaStream_t>(stream.native)));
  }

 private:
  void Check(const char* call, const GemmSpec& spec, cublasStatus_t status) const COHORT_REQUIRES(mu_) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    ThrowError(CodeOf(status), StrCat("[cuda/libraries] expected ", call, " to succeed; got ",
                                      functions_->cublasLtGetStatusName(status), " for ", CallText(spec)));
  }

  // Returns whether matrices at multiples of so many bytes are enough for the algorithm. The heuristics are told the
  // alignment, but cublasLtMatmulAlgoCheck does not look at it.
  bool TakesAlignment(const cublasLtMatmulAlgo_t& algorithm, int alignment) const COHORT_REQUIRES(mu_) {
    for (const auto capability : {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES,
                                  CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES}) {
      uint32_t needed = 0;
      size_t written = 0;
      const cublasStatus_t status =
          functions_->cublasLtMatmulAlgoCapGetAttribute(&algorithm, capability, &needed, sizeof(needed), &written);
      if (status == CUBLAS_STATUS_SUCCESS && needed > static_cast<uint32_t>(alignment)) return false;
    }
    return true;
  }

  void Open() COHORT_REQUIRES(mu_) {
    if (!functions_) functions_.emplace(DynamicLibrary::Open(CublasLtRequest(CUBLAS_VER_MAJOR), CudaLibraryFolders()));
  }

  // Makes the card the thread's current one, which the library's calls need.
  cublasLtHandle_t HandleOf(int card) COHORT_REQUIRES(mu_) {
    Open();
    CudartStatus("cudaSetDevice", card, cudaSetDevice(card)).ThrowIfError();
    cublasLtHandle_t& handle = handles_[card];
    if (handle == nullptr) {
      const cublasStatus_t status = functions_->cublasLtCreate(&handle);
      if (status != CUBLAS_STATUS_SUCCESS) {
        ThrowError(CodeOf(status), StrCat("[cuda/libraries] expected cublasLtCreate to succeed on card ", card,
                                          "; got ", functions_->cublasLtGetStatusName(status)));
      }
    }
    return handle;
  }

  const Plan& PlanOf(int card, const GemmSpec& spec) COHORT_REQUIRES(mu_) {
    const auto found = plans_.find({card, spec});
    if (found != plans_.end()) return found->second;
    if (plans_.size() == kMostPlans) {
      for (const auto& [key, old] : plans_) Release(old);
      plans_.clear();
    }
    Plan plan;
    try {
      HandleOf(card);
      MakeDescriptors(spec, plan);
    } catch (...) {
      Release(plan);
      throw;
    }
    return plans_.emplace(std::pair(card, spec), plan).first->second;
  }

  void MakeDescriptors(const GemmSpec& s, Plan& plan) COHORT_REQUIRES(mu_) {
    const Types types = TypesOf(s);
    Check("cublasLtMatmulDescCreate", s,
          functions_->cublasLtMatmulDescCreate(&plan.operation, types.compute, types.scale));
    const cublasOperation_t first = s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = EpilogueOf(s.end);
    SetOperation(s, plan, CUBLASLT_MATMUL_DESC_TRANSA, first);
    SetOperation(s, plan, CUBLASLT_MATMUL_DESC_TRANSB, second);
    SetOperation(s, plan, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (s.end != GemmEnd::kPlain) {
      // The heuristics may look at the alignment of the bias, whose address is not known yet.
      const void* aligned = reinterpret_cast<const void*>(static_cast<uintptr_t>(s.alignment));
      SetOperation(s, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
      SetOperation(s, plan, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, types.data);
    }
    plan.first = Layout(s, s.transpose_b ? s.k : s.n, s.transpose_b ? s.n : s.k, s.step_b);
    plan.second = Layout(s, s.transpose_a ? s.m : s.k, s.transpose_a ? s.k : s.m, s.step_a);
    plan.result = Layout(s, s.n, s.m, s.step_c);
  }

  template <typename T>
  void SetOperation(const GemmSpec& spec, const Plan& plan, cublasLtMatmulDescAttributes_t attribute, const T& value)
      COHORT_REQUIRES(mu_) {
    Check("cublasLtMatmulDescSetAttribute", spec,
          functions_->cublasLtMatmulDescSetAttribute(plan.operation, attribute, &value, sizeof(value)));
  }

  // A column-major matrix without gaps.
  cublasLtMatrixLayout_t Layout(const GemmSpec& spec, int64_t rows, int64_t columns, int64_t step)
      COHORT_REQUIRES(mu_) {
    cublasLtMatrixLayout_t layout = nullptr;
    Check("cublasLtMatrixLayoutCreate", spec,
          functions_->cublasLtMatrixLayoutCreate(&layout, TypesOf(spec).data, static_cast<uint64_t>(rows),
                                                 static_cast<uint64_t>(columns), rows));
    if (spec.batches == 1) return layout;
    const auto batches = static_cast<int32_t>(spec.batches);
    const auto set = functions_->cublasLtMatrixLayoutSetAttribute;
    Check("cublasLtMatrixLayoutSetAttribute", spec,
          set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof(batches)));
    Check("cublasLtMatrixLayoutSetAttribute", spec,
          set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof(step)));
    return layout;
  }

  // Returns up to `most` algorithms, the best first. Partial sums in place are not allowed, because their order may
  // differ from call to call.
  std::vector<cublasLtMatmulHeuristicResult_t> AskHeuristics(int card, const GemmSpec& spec, size_t most)
      COHORT_REQUIRES(mu_) {
    const Plan& plan = PlanOf(card, spec);
    const cublasLtHandle_t handle = HandleOf(card);
    cublasLtMatmulPreference_t preference = nullptr;
    Check("cublasLtMatmulPreferenceCreate", spec, functions_->cublasLtMatmulPreferenceCreate(&preference));
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) COHORT_REQUIRES(mu_) {
      return functions_->cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value));
    };
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    const auto alignment = static_cast<uint32_t>(spec.alignment);
    cublasStatus_t status = set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
    if (status == CUBLAS_STATUS_SUCCESS) status = set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      if (status == CUBLAS_STATUS_SUCCESS) status = set(attribute, alignment);
    }
    std::vector<cublasLtMatmulHeuristicResult_t> results(most);
    int found = 0;
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = functions_->cublasLtMatmulAlgoGetHeuristic(handle, plan.operation, plan.first, plan.second, plan.result,
                                                          plan.result, preference, static_cast<int>(most),
                                                          results.data(), &found);
    }
    functions_->cublasLtMatmulPreferenceDestroy(preference);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
    Check("cublasLtMatmulAlgoGetHeuristic", spec, status);
    results.resize(static_cast<size_t>(std::max(found, 0)));
    return results;
  }

  void Release(const Plan& plan) COHORT_REQUIRES(mu_) {
    if (plan.operation != nullptr) functions_->cublasLtMatmulDescDestroy(plan.operation);
    for (cublasLtMatrixLayout_t layout : {plan.first, plan.second, plan.result}) {
      if (layout != nullptr) functions_->cublasLtMatrixLayoutDestroy(layout);
    }
  }

  Mutex mu_;
  std::optional<Functions> functions_ COHORT_GUARDED_BY(mu_);
  std::map<int, cublasLtHandle_t> handles_ COHORT_GUARDED_BY(mu_);
  std::map<std::pair<int, GemmSpec>, Plan> plans_ COHORT_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<Blas> MakeBlas() { return std::make_unique<CublasLt>(); }

}  // namespace cohort::cuda
