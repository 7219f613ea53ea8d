#include "cohort/backends/cuda/kernels/elements.h"
#include "cohort/backends/cuda/kernels/unary.cu.h"
#include "cohort/backends/cuda/kernels/unary_functions.h"

namespace cohort::cuda {
namespace {

// Launches the loop of a function whose result has the type of the element, or is a truth value.
struct Launcher {
  Driver& driver;
  StreamHandle stream;
  ElementType type;
  const UnaryArgs& args;

  template <typename Fn>
  void Numbers() const {
    ForNumbers(type, "a function of numbers", [&]<typename T>(T) { Run<Fn, T, T>(); });
  }
  template <typename Fn>
  void Floats() const {
    ForFloating(type, "a function of floating-point numbers", [&]<typename T>(T) { Run<Fn, T, T>(); });
  }
  template <typename Fn>
  void Test() const {
    ForFloating(type, "a test of floating-point numbers", [&]<typename T>(T) { Run<Fn, T, bool>(); });
  }
  template <typename Fn, typename T, typename R>
  void Run() const {
    LaunchUnaryElements<T, R>(driver, stream, args.x, args.y, args.n, Fn());
  }
};

template <typename From>
void CastFrom(Driver& driver, StreamHandle stream, ElementType to, const UnaryArgs& args) {
  const auto launch = [&]<typename To>(To) {
    LaunchUnaryElements<From, To>(driver, stream, args.x, args.y, args.n, CastFunction<To>());
  };
  if (to == ElementType::kBool) return launch(bool());
  ForNumbers(to, "the result of a cast", launch);
}

}  // namespace

void LaunchUnary(Driver& driver, StreamHandle stream, UnaryOp op, ElementType type, const UnaryArgs& args) {
  const Launcher launcher{driver, stream, type, args};
  switch (op) {
    case UnaryOp::kNeg: return launcher.Numbers<NegFunction>();
    case UnaryOp::kAbs: return launcher.Numbers<AbsFunction>();
    case UnaryOp::kSign: return launcher.Numbers<SignFunction>();
    case UnaryOp::kSquare: return launcher.Numbers<SquareFunction>();
    case UnaryOp::kRound: return launcher.Numbers<RoundFunction>();
    case UnaryOp::kReciprocal: return launcher.Numbers<ReciprocalFunction>();
    case UnaryOp::kSqrt: return launcher.Floats<SqrtFunction>();
    case UnaryOp::kRsqrt: return launcher.Floats<RsqrtFunction>();
    case UnaryOp::kFloor: return launcher.Floats<FloorFunction>();
    case UnaryOp::kCeil: return launcher.Floats<CeilFunction>();
    case UnaryOp::kExp: return launcher.Floats<ExpFunction>();
    case UnaryOp::kExpm1: return launcher.Floats<Expm1Function>();
    case UnaryOp::kLog: return launcher.Floats<LogFunction>();
    case UnaryOp::kLog1p: return launcher.Floats<Log1pFunction>();
    case UnaryOp::kSin: return launcher.Floats<SinFunction>();
    case UnaryOp::kCos: return launcher.Floats<CosFunction>();
    case UnaryOp::kTan: return launcher.Floats<TanFunction>();
    case UnaryOp::kErf: return launcher.Floats<ErfFunction>();
    case UnaryOp::kIsNan: return launcher.Test<IsNanFunction>();
    case UnaryOp::kIsInf: return launcher.Test<IsInfFunction>();
    case UnaryOp::kIsFinite: return launcher.Test<IsFiniteFunction>();
    case UnaryOp::kLogicalNot: return launcher.Run<LogicalNotFunction, bool, bool>();
  }
}

void LaunchCast(Driver& driver, StreamHandle stream, ElementType from, ElementType to, const UnaryArgs& args) {
  if (from == ElementType::kBool) return CastFrom<bool>(driver, stream, to, args);
  ForNumbers(from, "the operand of a cast", [&]<typename From>(From) { CastFrom<From>(driver, stream, to, args); });
}

}  // namespace cohort::cuda
