#include "cohort/data/graph_function.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/stack.h"
#include "cohort/data/stages/stages.h"
#include "cohort/runtime/session.h"

namespace cohort::data {
namespace {

ElementSpec SpecOf(const std::vector<Output>& values) {
  ElementSpec spec;
  for (const Output& value : values) spec.push_back({value.dtype(), value.shape()});
  return spec;
}

SessionConfig OneThread() {
  SessionConfig config;
  config.intra_op_parallelism_threads = 1;  // calls stay on the thread of their caller
  return config;
}

// A function made ready to be called.
class GraphCall {
 public:
  GraphCall(std::shared_ptr<const Function> function, const ElementSpec& spec)
      : function_(CheckedFunction(std::move(function), spec)),
        spec_(SpecOf(function_->results())),
        session_(function_->graph(), "", OneThread()),
        callable_(session_.MakeCallable(function_->args(), function_->results())) {}

  const Function& function() const { return *function_; }
  const ElementSpec& result_spec() const { return spec_; }
  Element Call(const Element& element) const {
    Element result = callable_(element);
    CheckElement(result, spec_);
    return result;
  }

 private:
  static std::shared_ptr<const Function> CheckedFunction(std::shared_ptr<const Function> function,
                                                         const ElementSpec& spec) {
    if (function == nullptr) throw InvalidArgumentError("[data] expected a function; got none");
    if (function->results().empty() || !IsCompatible(spec, SpecOf(function->args()))) {
      throw InvalidArgumentError(StrCat("[data] expected a function of elements ", data::ToString(spec),
                                        " that has results; got ", function->Signature()));
    }
    return function;
  }

  const std::shared_ptr<const Function> function_;
  const ElementSpec spec_;
  Session session_;
  const Callable callable_;
};

class GraphElements : public ElementFunction {
 public:
  GraphElements(std::shared_ptr<const Function> function, const ElementSpec& spec) : call_(std::move(function), spec) {}
  Element Call(const Element& element) const override { return call_.Call(element); }
  const ElementSpec& output_spec() const override { return call_.result_spec(); }
  std::string ToString() const override { return call_.function().name(); }
  void Write(DescriptionWriter* out) const override {
    out->String("Graph");
    out->String(SerializeFunction(call_.function()));
  }

 private:
  const GraphCall call_;
};

class GraphSlices : public DatasetFunction {
 public:
  GraphSlices(std::shared_ptr<const Function> function, const ElementSpec& spec)
      : call_(std::move(function), spec), spec_(RowSpec(call_.result_spec())) {}
  NodePtr Call(const Element& element) const override { return MakeSlices(call_.Call(element)); }
  bool MayReadFiles() const override { return false; }
  const ElementSpec& output_spec() const override { return spec_; }
  std::string ToString() const override { return "slices of " + call_.function().name(); }
  void Write(DescriptionWriter* out) const override {
    out->String("GraphSlices");
    out->String(SerializeFunction(call_.function()));
  }

 private:
  const GraphCall call_;
  const ElementSpec spec_;
};

}  // namespace

std::shared_ptr<const Function> FunctionOf(const char* name, const ElementSpec& spec, const FunctionBody& body) {
  std::vector<FunctionArg> args;
  for (const TensorSpec& part : spec) args.push_back({part.dtype, part.shape, ""});
  return std::make_shared<const Function>(name, args, body);
}

std::shared_ptr<const ElementFunction> GraphElementFunction(std::shared_ptr<const Function> function,
                                                            const ElementSpec& spec) {
  return std::make_shared<GraphElements>(std::move(function), spec);
}
std::shared_ptr<const DatasetFunction> GraphSlicesFunction(std::shared_ptr<const Function> function,
                                                           const ElementSpec& spec) {
  return std::make_shared<GraphSlices>(std::move(function), spec);
}

std::shared_ptr<const ElementFunction> ReadGraphFunction(DescriptionReader& in, const ElementSpec& spec) {
  return GraphElementFunction(ParseFunction(in.String()), spec);
}
std::shared_ptr<const DatasetFunction> ReadGraphSlices(DescriptionReader& in, const ElementSpec& spec) {
  return GraphSlicesFunction(ParseFunction(in.String()), spec);
}

}  // namespace cohort::data
