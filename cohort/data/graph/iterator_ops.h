// The ops of iterators inside of graphs, and their kernels. cohort/registration.h registers them; programs use
// data/graph_iterator.h.
#pragma once

#include "cohort/data/element.h"
#include "cohort/graph/attr_value.h"

namespace cohort {

class KernelRegistry;
class OpRegistry;

// Register TensorFlow's IteratorV2, MakeIterator, IteratorGetNext, IteratorGetNextAsOptional, OptionalFromValue,
// OptionalNone, OptionalHasValue and OptionalGetValue, and ops of ours:
//   DatasetFromDescription   returns the dataset that data::Serialize has written: the inputs are the description, the
//                            hashes of the tensors, and the tensors
//   _IteratorRestart         puts an iterator at the start of its dataset; only GraphIterator::MakeRestart adds it
//   _IteratorSave            returns the position of an iterator; only IteratorSaver uses it
//   _IteratorRestore         makes an iterator go to a position; only IteratorSaver uses it
void RegisterDatasetOps(OpRegistry& registry);
void RegisterDatasetKernels(KernelRegistry& registry);

namespace data {

// The attributes output_types and output_shapes of these ops, and the spec that they describe. SpecFromAttrs throws
// InvalidArgumentError if the two lists differ in length.
std::vector<DType> TypesOf(const ElementSpec& spec);
std::vector<Shape> ShapesOf(const ElementSpec& spec);
ElementSpec SpecFromAttrs(const std::vector<DType>& types, const std::vector<Shape>& shapes);

}  // namespace data
}  // namespace cohort
