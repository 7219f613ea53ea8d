// Functions of graphs (graph/function.h) as what datasets apply. They run on one CPU device of their own, one call on
// one thread; their state, if the body has any, is the description's.
#pragma once

#include <memory>

#include "cohort/data/element_function.h"
#include "cohort/graph/function.h"

namespace cohort::data {

// A function of arguments as in `spec`, one a component. Throws what graph/function.h says.
std::shared_ptr<const Function> FunctionOf(const char* name, const ElementSpec& spec, const FunctionBody& body);

// The element of its results. Throws InvalidArgumentError where elements of `spec` are no arguments of it or it has no
// results, and what making its kernels throws.
std::shared_ptr<const ElementFunction> GraphElementFunction(std::shared_ptr<const Function> function,
                                                            const ElementSpec& spec);
// The slices of its results along axis 0.
std::shared_ptr<const DatasetFunction> GraphSlicesFunction(std::shared_ptr<const Function> function,
                                                           const ElementSpec& spec);

// By what their Write wrote after its kind.
std::shared_ptr<const ElementFunction> ReadGraphFunction(DescriptionReader& in, const ElementSpec& spec);
std::shared_ptr<const DatasetFunction> ReadGraphSlices(DescriptionReader& in, const ElementSpec& spec);

}  // namespace cohort::data
