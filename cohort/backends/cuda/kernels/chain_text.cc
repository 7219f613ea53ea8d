#include "cohort/backends/cuda/kernels/chain_text.h"

#include <algorithm>

#include "cohort/backends/cuda/kernels/chain_ops.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

struct TypeName {
  std::string_view name;
  ElementType type;
};
constexpr TypeName kTypeNames[] = {
    {"float32", ElementType::kFloat32}, {"float64", ElementType::kFloat64}, {"bfloat16", ElementType::kBfloat16}};

// Returns what is before the next `end`, and removes both from the text. A text without `end` is taken whole.
std::string_view Take(std::string_view& text, char end) {
  const size_t size = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return taken;
}

// Reads one text. The caller keeps the text.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  ChainOfText Read() {
    std::string_view left = text_;
    chain_.type = Type(Take(left, ' '));
    Operands(Take(left, ':'));
    ChainArgs& args = chain_.args;
    do {
      if (!left.empty() && left.front() == ' ') left.remove_prefix(1);
      if (args.steps == kMostChainSteps) Refuse(StrCat("at most ", kMostChainSteps, " steps"), left);
      args.step[args.steps] = Step(Take(left, ','));
      ++args.steps;
    } while (!left.empty());
    if (used_ < args.operands) Refuse("a step that uses each operand", StrCat("none that uses x", used_));
    const std::string same = ChainText(chain_.type, args);
    if (same != text_) Refuse(StrCat("'", same, "'"), "other spaces or signs between words");
    return chain_;
  }

 private:
  [[noreturn]] void Refuse(std::string_view expected, std::string_view got) const {
    throw InvalidArgumentError(
        StrCat("[cuda/kernels] expected ", expected, "; got ", got, " in the text of a chain, '", text_, "'"));
  }

  ElementType Type(std::string_view word) const {
    for (const TypeName& known : kTypeNames) {
      if (known.name == word) return known.type;
    }
    Refuse("float32, float64 or bfloat16", StrCat("'", word, "'"));
  }

  void Operands(std::string_view letters) {
    ChainArgs& args = chain_.args;
    args.broadcasts = letters.substr(0, 1) == "b";
    const std::string_view known = args.broadcasts ? "b" : "es";
    if (letters.empty() || letters.size() > kMostChainOperands ||
        letters.find_first_not_of(known) != std::string_view::npos) {
      Refuse(
          StrCat("a letter for each of at most ", kMostChainOperands, " operands (e or s, or b for all) and a colon"),
          StrCat("'", letters, "'"));
    }
    for (const char letter : letters) args.single[args.operands++] = letter == 's';
  }

  ChainStep Step(std::string_view words) {
    std::string_view left = words;
    const std::string_view name = Take(left, ' ');
    const ChainOpInfo* const info = FindChainOp(name);
    if (info == nullptr) Refuse("an op that chains have", StrCat("'", name, "'"));
    ChainStep step{info->op, 0, 0};
    step.a = step.b = Number(Take(left, ' '));
    if (info->operands() == 2) step.b = Number(Take(left, ' '));
    if (!left.empty()) Refuse(StrCat(info->operands(), " operands of ", name), StrCat("'", words, "'"));
    return step;
  }

  int8_t Number(std::string_view word) {
    if (word == "v" && chain_.args.steps > 0) return ChainStep::kRunning;
    for (int8_t o = 0; o < chain_.args.operands && o <= used_; ++o) {
      if (word != OperandName(o)) continue;
      used_ = std::max(used_, o + 1);
      return o;
    }
    Refuse("v (behind the first step), an operand that a step has used, or the next one", StrCat("'", word, "'"));
  }

  const std::string_view text_;
  ChainOfText chain_;
  int used_ = 0;  // operands that steps have used so far
};

}  // namespace

std::string ChainText(ElementType type, const ChainArgs& args) {
  const auto* const known =
      std::find_if(std::begin(kTypeNames), std::end(kTypeNames), [&](const TypeName& t) { return t.type == type; });
  if (known == std::end(kTypeNames)) {
    throw InternalError(StrCat("[cuda/kernels] expected float32, float64 or bfloat16 for a chain; got element type ",
                               static_cast<int>(type)));
  }
  std::string text = StrCat(known->name, " ");
  for (int o = 0; o < args.operands; ++o) text += args.broadcasts ? 'b' : args.single[o] ? 's' : 'e';
  for (int s = 0; s < args.steps; ++s) {
    const ChainOpInfo& info = InfoOf(args.step[s].op);
    text += StrCat(s == 0 ? ": " : ", ", info.name, " ", OperandName(args.step[s].a));
    if (info.operands() == 2) text += StrCat(" ", OperandName(args.step[s].b));
  }
  return text;
}

std::string OperandName(int8_t operand) { return operand == ChainStep::kRunning ? "v" : StrCat("x", int{operand}); }

ChainOfText ParseChain(std::string_view text) { return Reader(text).Read(); }

}  // namespace cohort::cuda
