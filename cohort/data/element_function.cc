#include "cohort/data/element_function.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::data {
namespace {

constexpr char kHost[] = "host function";

class HostElements : public ElementFunction {
 public:
  HostElements(HostMap function, ElementSpec spec, const char* stage)
      : function_(std::move(function)), spec_(std::move(spec)), stage_(stage) {
    if (!function_) throw InvalidArgumentError(StrCat("[data] expected a function for ", stage, "; got an empty one"));
  }
  Element Call(const Element& element) const override {
    Element result = function_(element);
    CheckElement(result, spec_);
    return result;
  }
  const ElementSpec& output_spec() const override { return spec_; }
  std::string ToString() const override { return kHost; }
  void Write(DescriptionWriter*) const override { RefuseToWrite(stage_); }

 private:
  const HostMap function_;
  const ElementSpec spec_;
  const char* const stage_;
};

class HostDatasets : public DatasetFunction {
 public:
  HostDatasets(HostDatasetFunction function, ElementSpec spec)
      : function_(std::move(function)), spec_(std::move(spec)) {
    if (!function_) throw InvalidArgumentError("[data] expected a function for Interleave; got an empty one");
  }
  NodePtr Call(const Element& element) const override {
    NodePtr node = function_(element).node();
    if (IsCompatible(node->spec(), spec_)) return node;
    throw InvalidArgumentError(StrCat("[data] expected an inner dataset of ", data::ToString(spec_), "; got ",
                                      data::ToString(node->spec()), " from ", node->ToString()));
  }
  bool MayReadFiles() const override { return true; }
  const ElementSpec& output_spec() const override { return spec_; }
  std::string ToString() const override { return kHost; }
  void Write(DescriptionWriter*) const override { RefuseToWrite("Interleave"); }

 private:
  const HostDatasetFunction function_;
  const ElementSpec spec_;
};

}  // namespace

void RefuseToWrite(const char* stage) {
  throw FailedPreconditionError(
      StrCat("[data] expected a dataset that can be serialised; got a ", stage,
             " that calls a function of this process; give it a graph function, or make the dataset where it is used"));
}

std::shared_ptr<const ElementFunction> HostElementFunction(HostMap function, ElementSpec output_spec) {
  return std::make_shared<HostElements>(std::move(function), std::move(output_spec), "Map");
}

std::shared_ptr<const ElementFunction> HostPredicateFunction(HostPredicate predicate, const char* stage) {
  if (!predicate) throw InvalidArgumentError(StrCat("[data] expected a predicate for ", stage, "; got an empty one"));
  HostMap function = [predicate = std::move(predicate)](const Element& element) -> Element {
    return {Tensor::Scalar(predicate(element))};
  };
  return std::make_shared<HostElements>(std::move(function), ElementSpec{{DType::kBool, Shape()}}, stage);
}

std::shared_ptr<const DatasetFunction> HostDatasetsFunction(HostDatasetFunction function, ElementSpec output_spec) {
  return std::make_shared<HostDatasets>(std::move(function), std::move(output_spec));
}

}  // namespace cohort::data
