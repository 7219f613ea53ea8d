// Makes functions of graphs (graph/function.h) usable in datasets. Each such function has a session of its own with one
// thread, so a call runs on the caller's thread. Variables of the body belong to the description and are shared by its
// iterators.
#pragma once

#include <memory>

#include "cohort/data/element_function.h"
#include "cohort/graph/function.h"

namespace cohort::data {

// Returns a function of the given body with one argument for each component of `spec`. Throws as graph/function.h says.
std::shared_ptr<const Function> FunctionOf(const char* name, const ElementSpec& spec, const FunctionBody& body);

// The returned function's results are the new element. Throws InvalidArgumentError if elements of `spec` do not fit its
// arguments or if it has no results, and what making its kernels throws.
std::shared_ptr<const ElementFunction> GraphElementFunction(std::shared_ptr<const Function> function,
                                                            const ElementSpec& spec);
// The datasets that it makes are the slices of the function's results along axis 0.
std::shared_ptr<const DatasetFunction> GraphSlicesFunction(std::shared_ptr<const Function> function,
                                                           const ElementSpec& spec);

// Each reads the function after its kind has been read. `spec` is that of the elements that it gets.
std::shared_ptr<const ElementFunction> ReadGraphFunction(DescriptionReader& in, const ElementSpec& spec);
std::shared_ptr<const DatasetFunction> ReadGraphSlices(DescriptionReader& in, const ElementSpec& spec);

}  // namespace cohort::data
