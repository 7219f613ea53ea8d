#include "cohort/ops/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/dims.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/reduction.h"

namespace cohort::ops {
namespace {

// Labels of dimensions: the code of a letter, or a negative number for a dimension of "...": -1 is its last one.
using Labels = std::vector<int>;

bool Has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }
bool IsLetter(int label) { return label >= 0; }

// A value and the labels of its dimensions.
struct Labelled {
  Output value;
  Labels labels;
};

// The parts of an equation. In a text "..." has become one '.'.
struct Equation {
  std::string text;
  std::vector<std::string> operands;
  std::string result;
  bool has_arrow = false;

  [[noreturn]] void Fail(const std::string& what) const {
    throw InvalidArgumentError(StrCat("[ops/einsum] expected ", what, "; got the equation \"", text, "\""));
  }
};

// Checks the letters of one term, and makes "..." one character.
std::string ParseTerm(const Equation& equation, const std::string& term) {
  std::string result;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.compare(i, 3, "...") == 0) {
      if (result.find('.') != std::string::npos) equation.Fail("\"...\" at most once in an operand and in the result");
      result += '.';
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
      result += term[i];
    } else {
      equation.Fail("letters, \"...\", commas and one \"->\"");
    }
  }
  return result;
}

Equation Parse(const std::string& text) {
  Equation equation;
  equation.text = text;
  std::string plain;
  for (const char c : text) {
    if (c != ' ') plain += c;
  }
  const size_t arrow = plain.find("->");
  equation.has_arrow = arrow != std::string::npos;
  if (equation.has_arrow) equation.result = ParseTerm(equation, plain.substr(arrow + 2));
  const std::string left = plain.substr(0, arrow);
  for (size_t begin = 0; begin <= left.size();) {
    const size_t comma = std::min(left.find(',', begin), left.size());
    equation.operands.push_back(ParseTerm(equation, left.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  return equation;
}

// The labels of a term whose "..." stands for `dots` dimensions.
Labels LabelsOf(const std::string& term, int dots) {
  Labels labels;
  for (const char c : term) {
    if (c != '.') labels.push_back(c);
    for (int i = dots; c == '.' && i > 0; --i) labels.push_back(-i);
  }
  return labels;
}

std::vector<Labelled> LabelOperands(const Equation& equation, const std::vector<Output>& operands, int* most_dots) {
  if (equation.operands.size() != operands.size()) {
    equation.Fail(StrCat("one term for each of ", operands.size(), " operands"));
  }
  std::vector<Labelled> labelled;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string& term = equation.operands[i];
    const Shape& shape = operands[i].shape();
    if (!shape.has_rank()) equation.Fail(StrCat("operands of known rank (operand ", i, " has none)"));
    const bool has_dots = term.find('.') != std::string::npos;
    const int letters = static_cast<int>(term.size()) - (has_dots ? 1 : 0);
    if (shape.rank() < letters || (!has_dots && shape.rank() != letters)) {
      equation.Fail(StrCat("a letter for each dimension of operand ", i, ", whose shape is ", shape));
    }
    const int dots = has_dots ? shape.rank() - letters : 0;
    *most_dots = std::max(*most_dots, dots);
    labelled.push_back({operands[i], LabelsOf(term, dots)});
  }
  return labelled;
}

// Throws if dimensions with one letter have different sizes.
void CheckSizes(const Equation& equation, const std::vector<Labelled>& operands) {
  std::map<int, int64_t> sizes;
  for (const Labelled& operand : operands) {
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      const int label = operand.labels[i];
      const int64_t size = operand.value.shape().dim(static_cast<int>(i));
      if (!IsLetter(label) || size < 0) continue;
      const int64_t known = sizes.try_emplace(label, size).first->second;
      if (known == size) continue;
      equation.Fail(StrCat("dimensions of one size for the letter '", std::string(1, static_cast<char>(label)),
                           "', but there are ", known, " and ", size));
    }
  }
}

Labels ResultLabels(const Equation& equation, const std::vector<Labelled>& operands, int dots) {
  std::map<int, int> counts;
  for (const Labelled& operand : operands) {
    for (const int label : operand.labels) ++counts[label];
  }
  if (!equation.has_arrow) {
    Labels labels;  // those of "..." are negative, so that they come first
    for (const auto& [label, count] : counts) {
      if (!IsLetter(label) || count == 1) labels.push_back(label);
    }
    return labels;
  }
  const bool has_dots = equation.result.find('.') != std::string::npos;
  if (dots > 0 && !has_dots) equation.Fail("\"...\" in the result as in the operands");
  const Labels labels = LabelsOf(equation.result, dots);
  if (std::set<int>(labels.begin(), labels.end()).size() != labels.size()) {
    equation.Fail("each letter once in the result");
  }
  for (const int label : labels) {
    if (counts[label] == 0) equation.Fail("letters in the result that an operand has");
  }
  return labels;
}

// The size of dimension i: a number if it is known, so that ReshapeTo can multiply it, else a scalar of the graph.
Operand DimOf(const Output& value, int i) {
  const int64_t dim = value.shape().dim(i);
  if (dim >= 0) return dim;
  return DimValue(value, i, DType::kInt64);
}

// The product of some sizes: a number as far as they are known, and scalars of the graph.
struct Extent {
  int64_t known = 1;
  std::vector<Output> others;
};

Extent ProductOf(const std::vector<Operand>& factors) {
  Extent size;
  for (const Operand& factor : factors) {
    if (factor.is_number())
      size.known *= factor.number().As(DType::kInt64)->scalar<int64_t>();
    else
      size.others.push_back(factor.output());
  }
  return size;
}

// The value with new dimensions, each of them the product of some sizes.
Output ReshapeTo(const Output& value, const std::vector<std::vector<Operand>>& dims, const NodeName& name = "") {
  std::vector<Extent> sizes;
  for (const std::vector<Operand>& factors : dims) sizes.push_back(ProductOf(factors));
  if (std::all_of(sizes.begin(), sizes.end(), [](const Extent& size) { return size.others.empty(); })) {
    std::vector<int64_t> known;
    for (const Extent& size : sizes) known.push_back(size.known);
    return Reshape(value, known, name);
  }
  std::vector<Output> scalars;
  for (const Extent& size : sizes) {
    Output scalar = Const(value.graph(), size.known);
    for (const Output& other : size.others) scalar = Mul(scalar, other);
    scalars.push_back(scalar);
  }
  return Reshape(value, Pack(scalars), name);
}

// Sees to it that dimensions with one letter have one size, also if the sizes are known only in the step: there it
// fails in a node whose name has the letter. Each dimension whose size is not known is reshaped to the size that its
// letter has elsewhere. A node changes one dimension only, so that no other one can make up for it.
void AlignSizes(std::vector<Labelled>& operands) {
  std::map<int, Operand> sizes;
  std::map<int, int> counts;
  for (const Labelled& operand : operands) {
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      const int64_t size = operand.value.shape().dim(static_cast<int>(i));
      if (size >= 0) sizes.try_emplace(operand.labels[i], size);
      ++counts[operand.labels[i]];
    }
  }
  for (Labelled& operand : operands) {
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      const int label = operand.labels[i], at = static_cast<int>(i);
      if (!IsLetter(label) || counts[label] == 1 || operand.value.shape().dim(at) >= 0) continue;
      const auto size = sizes.find(label);
      if (size == sizes.end()) {
        sizes.emplace(label, DimOf(operand.value, at));
        continue;
      }
      std::vector<std::vector<Operand>> dims;
      for (int d = 0; d < operand.value.shape().rank(); ++d) {
        dims.push_back({d == at ? size->second : DimOf(operand.value, d)});
      }
      operand.value = ReshapeTo(operand.value, dims, StrCat("one_size_of_", static_cast<char>(label)));
    }
  }
}

Labelled Transposed(const Labelled& x, const Labels& order) {
  if (x.labels == order) return x;
  std::vector<int64_t> perm;
  for (const int label : order) perm.push_back(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
  return {Transpose(x.value, perm), order};
}

// Takes the diagonal of dimensions with one label.
Labelled WithoutRepeats(Labelled x) {
  for (size_t i = 0; i < x.labels.size(); ++i) {
    const auto again = std::find(x.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, x.labels.end(), x.labels[i]);
    if (again == x.labels.end()) continue;
    // The two dimensions come first and are joined; the diagonal is each (n + 1)-th row.
    const auto second = static_cast<size_t>(again - x.labels.begin());
    std::vector<int64_t> perm = {static_cast<int64_t>(i), static_cast<int64_t>(second)};
    Labels labels = {x.labels[i]};
    for (size_t d = 0; d < x.labels.size(); ++d) {
      if (d == i || d == second) continue;
      perm.push_back(static_cast<int64_t>(d));
      labels.push_back(x.labels[d]);
    }
    const Output moved = Transpose(x.value, perm);
    Graph& graph = moved.graph();
    std::vector<std::vector<Operand>> dims = {{DimOf(moved, 0), DimOf(moved, 1)}};
    for (int d = 2; d < moved.shape().rank(); ++d) dims.push_back({DimOf(moved, d)});
    const Output n = DimValue(moved, 0, DType::kInt64);
    const Output places = Range(Const(graph, int64_t{0}), Mul(n, n), Add(n, int64_t{1}));
    x = {Gather(ReshapeTo(moved, dims), places), labels};
    i = static_cast<size_t>(-1);  // begin anew
  }
  return x;
}

// Sums over the labels that are not in `kept`.
Labelled SumOthers(const Labelled& x, const Labels& kept) {
  std::vector<int64_t> axes;
  Labels labels;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (Has(kept, x.labels[i]))
      labels.push_back(x.labels[i]);
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return x;
  return {Sum(x.value, axes), labels};
}

// What becomes of the labels of a product of two operands.
struct ProductLabels {
  Labels batch;       // of both, and of the result; those of "..." first
  Labels left;        // of the left operand, and of the result
  Labels right;       // of the right operand, and of the result
  Labels contracted;  // of both, but not of the result
};

ProductLabels Sorted(const Labelled& a, const Labelled& b, const Labels& kept) {
  ProductLabels labels;
  std::set<int> dots;
  for (const Labelled* x : {&a, &b}) {
    for (const int label : x->labels) {
      if (!IsLetter(label)) dots.insert(label);
    }
  }
  labels.batch.assign(dots.begin(), dots.end());
  for (const int label : a.labels) {
    if (!IsLetter(label)) continue;
    Labels& to = !Has(b.labels, label) ? labels.left : Has(kept, label) ? labels.batch : labels.contracted;
    to.push_back(label);
  }
  for (const int label : b.labels) {
    if (IsLetter(label) && !Has(a.labels, label)) labels.right.push_back(label);
  }
  return labels;
}

// An operand as [batch..., rows, columns], or as [batch..., columns, rows] if `swapped`.
struct Matrices {
  Output value;
  bool swapped = false;
};

// The labels of `batch` that x lacks are those of "...", and come first: they broadcast.
Matrices MatricesOf(const Labelled& x, const Labels& batch, const Labels& rows, const Labels& columns) {
  Labels own;
  for (const int label : batch) {
    if (Has(x.labels, label)) own.push_back(label);
  }
  const auto joined = [&](const Labels& first, const Labels& second) {
    Labels all = own;
    all.insert(all.end(), first.begin(), first.end());
    all.insert(all.end(), second.begin(), second.end());
    return all;
  };
  const bool swapped = x.labels == joined(columns, rows) && x.labels != joined(rows, columns);
  const Labelled moved = swapped ? x : Transposed(x, joined(rows, columns));
  if (rows.size() == 1 && columns.size() == 1) return {moved.value, swapped};
  std::vector<std::vector<Operand>> dims;
  int at = 0;
  for (size_t i = 0; i < own.size(); ++i) dims.push_back({DimOf(moved.value, at++)});
  for (const Labels* part : {swapped ? &columns : &rows, swapped ? &rows : &columns}) {
    dims.emplace_back();
    for (size_t i = 0; i < part->size(); ++i) dims.back().push_back(DimOf(moved.value, at++));
  }
  return {ReshapeTo(moved.value, dims), swapped};
}

// The sizes of the dimensions of x with these labels.
std::vector<std::vector<Operand>> SizesOf(const Labelled& x, const Labels& labels) {
  std::vector<std::vector<Operand>> sizes;
  for (const int label : labels) {
    const auto at = std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin();
    sizes.push_back({DimOf(x.value, static_cast<int>(at))});
  }
  return sizes;
}

Labelled Product(const Labelled& a, const Labelled& b, const Labels& kept) {
  const ProductLabels labels = Sorted(a, b, kept);
  const auto& [batch, left, right, contracted] = labels;
  const Matrices x = MatricesOf(a, batch, left, contracted);
  const Matrices y = MatricesOf(b, batch, contracted, right);
  // Without a sum each element is one product.
  const Output product =
      contracted.empty() ? Mul(x.value, y.value) : BatchMatMul(x.value, y.value, x.swapped, y.swapped);
  Labels all = batch;
  all.insert(all.end(), left.begin(), left.end());
  all.insert(all.end(), right.begin(), right.end());
  if (left.size() == 1 && right.size() == 1) return {product, all};
  std::vector<std::vector<Operand>> dims;
  for (size_t i = 0; i < batch.size(); ++i) dims.push_back({DimOf(product, static_cast<int>(i))});
  for (auto& size : SizesOf(a, left)) dims.push_back(std::move(size));
  for (auto& size : SizesOf(b, right)) dims.push_back(std::move(size));
  return {ReshapeTo(product, dims), all};
}

}  // namespace

Output Einsum(const std::string& equation_text, const std::vector<Output>& operands, const NodeName& name) {
  if (operands.empty()) throw InvalidArgumentError("[ops/einsum] expected at least one operand; got none");
  const CallSiteScope site(operands[0].graph(), name.site());
  const Equation equation = Parse(equation_text);
  int dots = 0;
  std::vector<Labelled> labelled = LabelOperands(equation, operands, &dots);
  CheckSizes(equation, labelled);
  const Labels result = ResultLabels(equation, labelled, dots);
  AlignSizes(labelled);
  for (Labelled& operand : labelled) operand = WithoutRepeats(operand);
  Labelled product;
  for (size_t i = 0; i < labelled.size(); ++i) {
    // What the result and the operands that follow need.
    Labels later = result;
    for (size_t k = i + 1; k < labelled.size(); ++k) {
      later.insert(later.end(), labelled[k].labels.begin(), labelled[k].labels.end());
    }
    Labels now = later;
    now.insert(now.end(), product.labels.begin(), product.labels.end());
    const Labelled operand = SumOthers(labelled[i], now);
    if (i == 0) {
      product = operand;
      continue;
    }
    Labels shared = later;
    shared.insert(shared.end(), operand.labels.begin(), operand.labels.end());
    product = Product(SumOthers(product, shared), operand, later);
  }
  return Identity(Transposed(product, result).value, name);
}

}  // namespace cohort::ops
