#include "cohort/collective/algorithm.h"

#include <algorithm>
#include <cctype>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

struct Row {
  Algorithm algorithm;
  const char* name;
  bool has_plan;
};

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> made = {{Algorithm::kAuto, "AUTO", false},
#define COHORT_PLAN_ROW(enumerator, number, name, functions) {Algorithm::enumerator, name, true},
#define COHORT_ENGINE_ROW(enumerator, number, name, functions) {Algorithm::enumerator, name, false},
                             COHORT_COLLECTIVE_ALGORITHMS(COHORT_PLAN_ROW, COHORT_ENGINE_ROW)
#undef COHORT_PLAN_ROW
#undef COHORT_ENGINE_ROW
    };
    std::sort(made.begin(), made.end(), [](const Row& a, const Row& b) { return a.algorithm < b.algorithm; });
    return made;
  }();
  return rows;
}

const Row* FindRow(Algorithm algorithm) {
  for (const Row& row : Rows()) {
    if (row.algorithm == algorithm) return &row;
  }
  return nullptr;
}

}  // namespace

const char* AlgorithmName(Algorithm algorithm) {
  const Row* row = FindRow(algorithm);
  return row == nullptr ? "UNKNOWN" : row->name;
}

Algorithm AlgorithmByName(const std::string& name) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::vector<std::string> names;
  for (const Row& row : Rows()) {
    if (upper == row.name) return row.algorithm;
    names.emplace_back(row.name);
  }
  throw InvalidArgumentError(
      StrCat("[collective] expected an algorithm of ", StrJoin(names, ", "), "; got '", name, "'"));
}

const std::vector<Algorithm>& AllAlgorithms() {
  static const std::vector<Algorithm> all = [] {
    std::vector<Algorithm> made;
    for (const Row& row : Rows()) made.push_back(row.algorithm);
    return made;
  }();
  return all;
}

bool HasPlan(Algorithm algorithm) {
  const Row* row = FindRow(algorithm);
  return row != nullptr && row->has_plan;
}

}  // namespace cohort::collective
