#include "cohort/graph/function_draft.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"

namespace cohort {

FunctionArg ArgumentLike(const Output& value, std::string name) {
  FunctionArg arg{value.dtype(), value.shape(), std::move(name)};
  if (value.dtype() == DType::kResource) {
    arg.handle_dtype = HandleDType(value);
    arg.handle_shape = HandleShape(value);
  }
  return arg;
}

Output AddArgument(Graph& body, const FunctionArg& arg) {
  NodeBuilder builder = body.Op("Placeholder");
  builder.Name(arg.name).Attr("dtype", arg.dtype).Attr("shape", arg.shape).IgnoreScopes();
  if (arg.handle_dtype != DType::kInvalid) {
    builder.Attr(kHandleDTypes, std::vector<DType>{arg.handle_dtype});
    builder.Attr(kHandleShapes, std::vector<Shape>{arg.handle_shape});
  }
  return builder.Finish1();
}

Graph& InnermostGraph(const std::vector<Output>& values) {
  Graph* innermost = &values.at(0).graph();
  for (const Output& value : values) {
    if (value.graph().IsInside(*innermost)) innermost = &value.graph();
  }
  return *innermost;
}

FunctionDraft::FunctionDraft(Graph& outer, std::string what, const std::vector<FunctionArg>& args,
                             const FunctionBody& body)
    : outer_(outer), what_(std::move(what)), body_(outer.NewBody()) {
  FillBody(what_, args, body, *body_, &args_, &results_);
  for (Output& result : results_) {
    const Output captured = result.valid() ? body_->Capture(result) : Output{};
    if (captured.valid()) result = captured;
  }
}

std::vector<Output> FunctionDraft::captures() const {
  if (!captures_.empty()) return captures_;
  std::vector<Output> values;
  for (const Graph::CapturedValue& captured : body_->captures()) values.push_back(captured.outside);
  return values;
}

void FunctionDraft::SetCaptures(const std::vector<Output>& values) {
  for (const Output& value : values) {
    if (!body_->Capture(value).valid()) {
      throw InternalError(StrCat("[graph] the function '", what_, "' cannot capture ", value.name()));
    }
  }
  captures_ = values;
}

std::shared_ptr<const Function> FunctionDraft::Finish(const std::string& name) {
  for (const Output& value : captures()) args_.push_back(body_->Capture(value));
  body_->CloseBody();
  auto function = std::make_shared<const Function>(name, std::move(body_), std::move(args_), std::move(results_));
  outer_.AddFunction(function);
  return function;
}

}  // namespace cohort
