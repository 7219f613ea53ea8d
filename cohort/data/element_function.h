// ElementFunction: the function that Map or Filter applies to each element. DatasetFunction: the function that makes a
// dataset of each element for Interleave.
#pragma once

#include <memory>
#include <string>

#include "cohort/data/dataset.h"
#include "cohort/data/stages/stage.h"

namespace cohort::data {

// Makes one element of another. Immutable and thread-safe. Owned by the stage that calls it.
class ElementFunction {
 public:
  virtual ~ElementFunction() = default;
  virtual Element Call(const Element& element) const = 0;
  virtual const ElementSpec& output_spec() const = 0;
  virtual std::string ToString() const = 0;
  // Writes the function's kind and parameters, which ReadElementFunction (description.cc) reads. Throws
  // FailedPreconditionError for a function of the host.
  virtual void Write(DescriptionWriter* out) const = 0;
};

// Makes a dataset of an element. Immutable and thread-safe. Owned by the stage that calls it.
class DatasetFunction {
 public:
  virtual ~DatasetFunction() = default;
  virtual NodePtr Call(const Element& element) const = 0;
  // Returns false if none of the datasets that it makes can read files.
  virtual bool MayReadFiles() const = 0;
  virtual const ElementSpec& output_spec() const = 0;
  virtual std::string ToString() const = 0;
  virtual void Write(DescriptionWriter* out) const = 0;
};

// Reads the function of a ParseExampleDataset after its kind has been read (parse_example.cc).
class DescriptionReader;
std::shared_ptr<const ElementFunction> ReadParseExample(DescriptionReader& in);

std::shared_ptr<const ElementFunction> HostElementFunction(HostMap function, ElementSpec output_spec);
std::shared_ptr<const ElementFunction> HostPredicateFunction(HostPredicate predicate);
std::shared_ptr<const DatasetFunction> HostDatasetsFunction(HostDatasetFunction function, ElementSpec output_spec);

}  // namespace cohort::data
