#include "cohort/keras/summary_table.h"

#include <algorithm>
#include <map>

#include "cohort/core/str_cat.h"
#include "cohort/keras/training/model_state.h"

namespace cohort::keras {
namespace {

// "(None, 28, 28, 128)".
std::string Dims(const Shape& shape) {
  std::vector<std::string> dims;
  for (const int64_t dim : shape.dims()) dims.push_back(dim < 0 ? "None" : StrCat(dim));
  return dims.size() == 1 ? StrCat("(", dims[0], ",)") : StrCat("(", StrJoin(dims, ", "), ")");
}

std::string Dims(const std::vector<Shape>& shapes) {
  if (shapes.size() == 1) return Dims(shapes[0]);
  std::vector<std::string> all;
  all.reserve(shapes.size());
  for (const Shape& shape : shapes) all.push_back(Dims(shape));
  return StrCat("[", StrJoin(all, ", "), "]");
}

// "2,887,306".
std::string Thousands(int64_t number) {
  const std::string digits = StrCat(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// Joins the fields. Each is cut or filled to the end of its column. If a field fills its column, a space replaces its
// last character.
std::string Line(const std::vector<std::string>& fields, const std::vector<size_t>& ends) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0 && !line.empty()) line.back() = ' ';
    line += fields[i];
    line.resize(ends[i], ' ');
  }
  return line + "\n";
}

}  // namespace

std::string SummaryTable(const std::string& title, const std::vector<SummaryRow>& rows, const SummaryTotals& totals,
                         bool connections) {
  const std::vector<size_t> ends = connections ? std::vector<size_t>{32, 53, 65, 98} : std::vector<size_t>{29, 55, 65};
  const std::string thin = StrCat(std::string(ends.back(), '_'), "\n");
  const std::string thick = StrCat(std::string(ends.back(), '='), "\n");
  std::vector<std::string> header = {"Layer (type)", "Output Shape", "Param #"};
  if (connections) header.emplace_back("Connected to");
  std::string text = StrCat("Model: \"", title, "\"\n", thin, Line(header, ends), thick);
  for (size_t i = 0; i < rows.size(); ++i) {
    const SummaryRow& row = rows[i];
    std::vector<std::string> fields = {StrCat(row.name, " (", row.class_name, ")"), Dims(row.outputs),
                                       StrCat(row.params)};
    if (connections) fields.push_back(row.connected_to.empty() ? "" : row.connected_to[0]);
    text += Line(fields, ends);
    for (size_t more = 1; connections && more < row.connected_to.size(); ++more) {
      text += Line({"", "", "", row.connected_to[more]}, ends);
    }
    text += i + 1 < rows.size() ? thin : thick;
  }
  return StrCat(text, "Total params: ", Thousands(totals.trainable + totals.non_trainable),
                "\nTrainable params: ", Thousands(totals.trainable),
                "\nNon-trainable params: ", Thousands(totals.non_trainable), "\n", thin);
}

std::string SummaryOf(ModelState& state) {
  ModelEngine& engine = state.engine();
  const std::vector<LayerInstance::LayerValues> values = engine.step_values();
  const std::vector<LayerGraph::LayerStep>& steps = engine.layers().steps();
  const bool chain = engine.layers().class_name() == "Sequential";
  std::vector<SummaryRow> rows;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (chain && i == 0) continue;  // the input
    std::vector<std::string> connected;
    for (const LayerGraph::Value& input : steps[i].inputs) {
      connected.push_back(StrCat(values[input.step].path, "[", input.index, "]"));
    }
    const auto same = [&](const SummaryRow& row) { return row.name == values[i].path; };
    const auto found = std::find_if(rows.begin(), rows.end(), same);
    if (found != rows.end()) {  // a layer that is used again
      found->connected_to.insert(found->connected_to.end(), connected.begin(), connected.end());
      continue;
    }
    SummaryRow row = {values[i].path, steps[i].layer->class_name(), {}, 0, connected};
    for (const Output& output : values[i].outputs) row.outputs.push_back(output.shape());
    for (const size_t w : WeightsBelow(engine.weights(), row.name)) {
      row.params += engine.weights()[w].spec.shape.num_elements();
    }
    rows.push_back(std::move(row));
  }
  SummaryTotals totals;
  const std::map<std::string, bool> trainable = engine.TrainableWeights();
  for (const ModelWeight& weight : engine.weights()) {
    (trainable.at(weight.path) ? totals.trainable : totals.non_trainable) += weight.spec.shape.num_elements();
  }
  return SummaryTable(state.name(), rows, totals, !chain);
}

}  // namespace cohort::keras
