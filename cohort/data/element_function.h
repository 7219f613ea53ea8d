// ElementFunction: what Map and Filter apply to an element. DatasetFunction: what Interleave makes of one.
#pragma once

#include <memory>
#include <string>

#include "cohort/data/dataset.h"
#include "cohort/data/stages/stage.h"

namespace cohort::data {

// Immutable, thread-safe.
class ElementFunction {
 public:
  virtual ~ElementFunction() = default;
  virtual Element Call(const Element& element) const = 0;
  virtual const ElementSpec& output_spec() const = 0;
  virtual std::string ToString() const = 0;
  // The function's kind and parameters, as ReadElementFunction (description.cc) reads them. Throws
  // FailedPreconditionError for a function of the host.
  virtual void Write(DescriptionWriter* out) const = 0;
};

class DatasetFunction {
 public:
  virtual ~DatasetFunction() = default;
  virtual NodePtr Call(const Element& element) const = 0;
  // False where no dataset that it makes reads files, whatever the element.
  virtual bool MayReadFiles() const = 0;
  virtual const ElementSpec& output_spec() const = 0;
  virtual std::string ToString() const = 0;
  virtual void Write(DescriptionWriter* out) const = 0;
};

// What ParseExampleDataset applies, by what its Write wrote after its kind (parse_example.cc).
class DescriptionReader;
std::shared_ptr<const ElementFunction> ReadParseExample(DescriptionReader& in);

std::shared_ptr<const ElementFunction> HostElementFunction(HostMap function, ElementSpec output_spec);
std::shared_ptr<const ElementFunction> HostPredicateFunction(HostPredicate predicate);
std::shared_ptr<const DatasetFunction> HostDatasetsFunction(HostDatasetFunction function, ElementSpec output_spec);

}  // namespace cohort::data
