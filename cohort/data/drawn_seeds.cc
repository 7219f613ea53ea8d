#include "cohort/data/drawn_seeds.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/stages/stage.h"

namespace cohort::data {
namespace {

// Returns `node` with the seeds from *next on, and moves *next after those that it has used.
NodePtr Reseeded(const NodePtr& node, const uint64_t** next) {
  std::vector<NodePtr> inputs;
  for (const NodePtr& input : node->inputs()) inputs.push_back(Reseeded(input, next));
  const NodePtr result = inputs == node->inputs() ? node : node->WithInputs(std::move(inputs));
  return result->drawn_seed() ? result->WithDrawnSeed(*(*next)++) : result;
}

}  // namespace

std::vector<uint64_t> DrawnSeeds(const Dataset& dataset) {
  std::vector<uint64_t> seeds;
  for (const DatasetNode* node : ShufflesWithoutSeed(*dataset.node())) seeds.push_back(*node->drawn_seed());
  return seeds;
}

Dataset WithDrawnSeeds(const Dataset& dataset, const std::vector<uint64_t>& seeds) {
  const size_t wanted = ShufflesWithoutSeed(*dataset.node()).size();
  if (seeds.size() != wanted) {
    throw InvalidArgumentError(StrCat("[data] expected a seed for each of the ", wanted, " shuffles without one in ",
                                      dataset.ToString(), "; got ", seeds.size()));
  }
  const uint64_t* next = seeds.data();
  return Dataset(Reseeded(dataset.node(), &next));
}

}  // namespace cohort::data
