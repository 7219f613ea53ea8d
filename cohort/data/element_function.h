// ElementFunction: the function that Map, Filter or TakeWhile applies to each element. DatasetFunction: the function
// with which Interleave makes a dataset from each element.
#pragma once

#include <memory>
#include <string>

#include "cohort/data/dataset.h"
#include "cohort/data/stages/stage.h"

namespace cohort::data {

// Makes a new element from an element. Stages share ownership of the function through shared_ptr. Immutable and
// thread-safe, with one exception: a function of the host (one that the program wrote in C++) is only as thread-safe as
// the program made it.
class ElementFunction {
 public:
  virtual ~ElementFunction() = default;
  // Throws what the function throws, and InvalidArgumentError if the result does not fit output_spec().
  virtual Element Call(const Element& element) const = 0;
  virtual const ElementSpec& output_spec() const = 0;
  virtual std::string ToString() const = 0;
  // Writes the function's kind and parameters, which ReadElementFunction (description.cc) reads. Throws
  // FailedPreconditionError for a function of the host.
  virtual void Write(DescriptionWriter* out) const = 0;
};

// Makes a dataset from an element. Ownership and threads are as for ElementFunction.
class DatasetFunction {
 public:
  virtual ~DatasetFunction() = default;
  // Throws what the function throws, and InvalidArgumentError if the dataset's elements do not fit output_spec().
  virtual NodePtr Call(const Element& element) const = 0;
  // Returns whether datasets that the function makes may read files. Returns true if this is not known.
  virtual bool MayReadFiles() const = 0;
  virtual const ElementSpec& output_spec() const = 0;
  virtual std::string ToString() const = 0;
  // Writes the function as ElementFunction::Write does, and throws as that function does.
  virtual void Write(DescriptionWriter* out) const = 0;
};

// Throws FailedPreconditionError: this stage calls a function of the process, and so it cannot be serialized.
[[noreturn]] void RefuseToWrite(const char* stage);

// Reads from `in` the function with which ParseExampleDataset (readers/readers.h) parses tf.Examples. Requires: the
// function's kind has been read from `in` before.
class DescriptionReader;
std::shared_ptr<const ElementFunction> ReadParseExample(DescriptionReader& in);

// Make functions of the host from functions of the program. Throw InvalidArgumentError if the function is empty.
// What HostPredicateFunction returns makes elements with one component: the result of the predicate, a bool scalar.
// `stage`: what the function is for, a text that lives as long as the program.
std::shared_ptr<const ElementFunction> HostElementFunction(HostMap function, ElementSpec output_spec);
std::shared_ptr<const ElementFunction> HostPredicateFunction(HostPredicate predicate, const char* stage);
std::shared_ptr<const DatasetFunction> HostDatasetsFunction(HostDatasetFunction function, ElementSpec output_spec);

}  // namespace cohort::data
