// Kernels of ops/strings.h that make rows of different lengths: parts, characters and n-grams of strings.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/utf8.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/ascii_spaces.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/strings.h"

namespace cohort {
namespace {

using Parts = std::vector<std::string_view>;

// Adds the words of `text`. After `maxsplit` words the rest is one part, also if it is empty.
void SplitAtSpaces(std::string_view text, int64_t maxsplit, Parts* parts) {
  text = WithoutLeadingSpaces(text);
  for (int64_t words = 1; !text.empty(); ++words) {
    const size_t end = std::min(text.find_first_of(kSpaces), text.size());
    parts->push_back(text.substr(0, end));
    text = WithoutLeadingSpaces(text.substr(end));
    if (words == maxsplit) return parts->push_back(text);
  }
}

void Split(std::string_view text, std::string_view sep, int64_t maxsplit, Parts* parts) {
  if (maxsplit == 0) return parts->push_back(text);
  if (sep.empty()) return SplitAtSpaces(text, maxsplit, parts);
  for (int64_t splits = 0; splits != maxsplit; ++splits) {
    const size_t end = text.find(sep);
    if (end == text.npos) break;
    parts->push_back(text.substr(0, end));
    text.remove_prefix(end + sep.size());
  }
  parts->push_back(text);
}

void StringSplitV2(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const std::string& sep = ctx.input(1).scalar<std::string>();
  const auto maxsplit = ctx.node().attr<int64_t>("maxsplit");
  const std::string* from = x.data<std::string>();
  const int64_t rows = x.num_elements();
  Parts parts;
  std::vector<size_t> ends;
  int64_t longest = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const size_t begin = parts.size();
    Split(from[row], sep, maxsplit, &parts);
    ends.push_back(parts.size());
    longest = std::max(longest, static_cast<int64_t>(parts.size() - begin));
  }
  const auto count = static_cast<int64_t>(parts.size());
  int64_t* indices = ctx.AllocateOutput(0, Shape{count, 2}).data<int64_t>();
  std::string* values = ctx.AllocateOutput(1, Shape{count}).data<std::string>();
  int64_t* shape = ctx.AllocateOutput(2, Shape{2}).data<int64_t>();
  size_t part = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; part < ends[static_cast<size_t>(row)]; ++part, ++column) {
      *indices++ = row;
      *indices++ = column;
      *values++ = parts[part];
    }
  }
  shape[0] = rows;
  shape[1] = longest;
}

void SetIntegers(KernelContext& ctx, int output, const std::vector<int64_t>& values) {
  Tensor& out = ctx.AllocateOutput(output, Shape{static_cast<int64_t>(values.size())});
  if (out.dtype() == DType::kInt64) {
    std::copy(values.begin(), values.end(), out.data<int64_t>());
    return;
  }
  std::transform(values.begin(), values.end(), out.data<int32_t>(), [](int64_t v) { return static_cast<int32_t>(v); });
}

// Returns the splits of `count` values into rows. Throws InvalidArgumentError if they are none.
std::vector<int64_t> SplitsOf(const Tensor& tensor, int64_t count) {
  std::vector<int64_t> splits = ops::IntegerValues(tensor);
  const bool good =
      !splits.empty() && splits.front() == 0 && splits.back() == count && std::is_sorted(splits.begin(), splits.end());
  if (good) return splits;
  throw InvalidArgumentError(StrCat(
      "expected splits in ascending order, from 0 to the number of values, ", count, "; got ",
      splits.empty() ? std::string("none") : StrCat(splits.size(), " from ", splits.front(), " to ", splits.back())));
}

// What happens to bytes and numbers that are no characters.
struct Malformed {
  explicit Malformed(const Node& node)
      : strict(node.attr<std::string>("errors") == "strict"),
        ignore(node.attr<std::string>("errors") == "ignore"),
        replacement(static_cast<int32_t>(node.attr<int64_t>("replacement_char"))) {
    if (node.attr<int64_t>("replacement_char") == replacement && cpu::IsCharacter(replacement)) return;
    throw InvalidArgumentError(
        StrCat("expected a replacement_char of Unicode; got ", node.attr<int64_t>("replacement_char")));
  }
  const bool strict, ignore;
  const int32_t replacement;
};

void UnicodeDecode(KernelContext& ctx) {
  const Malformed malformed(ctx.node());
  const bool replaces_controls = ctx.node().attr<bool>("replace_control_characters");
  const Tensor& x = ctx.input(0);
  const std::string* from = x.data<std::string>();
  std::vector<int64_t> splits = {0};
  std::vector<int32_t> characters;
  for (int64_t row = 0; row < x.num_elements(); ++row) {
    for (std::string_view rest = from[row]; !rest.empty();) {
      const cpu::Utf8Piece piece = cpu::FirstCharacter(rest);
      if (!piece.valid && malformed.strict) {
        throw InvalidArgumentError(StrCat("expected texts in UTF-8; string ", row, " is not, from byte ",
                                          from[row].size() - rest.size(), " on"));
      }
      rest.remove_prefix(piece.bytes);
      const bool good = piece.valid && !(replaces_controls && piece.character <= 0x1F);
      if (good) characters.push_back(piece.character);
      if (!good && !malformed.ignore) characters.push_back(malformed.replacement);
    }
    splits.push_back(static_cast<int64_t>(characters.size()));
  }
  SetIntegers(ctx, 0, splits);
  Tensor& out = ctx.AllocateOutput(1, Shape{static_cast<int64_t>(characters.size())});
  std::copy(characters.begin(), characters.end(), out.data<int32_t>());
}

void UnicodeEncode(KernelContext& ctx) {
  const Malformed malformed(ctx.node());
  const Tensor& x = ctx.input(0);
  const int32_t* from = x.data<int32_t>();
  const std::vector<int64_t> splits = SplitsOf(ctx.input(1), x.num_elements());
  const size_t rows = splits.size() - 1;
  std::string* to = ctx.AllocateOutput(0, Shape{static_cast<int64_t>(rows)}).data<std::string>();
  for (size_t row = 0; row < rows; ++row) {
    for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
      const bool good = cpu::IsCharacter(from[i]);
      if (!good && malformed.strict) {
        throw InvalidArgumentError(StrCat("expected characters of Unicode; value ", i, " is ", from[i]));
      }
      if (good) cpu::AppendCharacter(from[i], &to[row]);
      if (!good && !malformed.ignore) cpu::AppendCharacter(malformed.replacement, &to[row]);
    }
  }
}

// What n-grams may take together.
constexpr int64_t kMostStrings = int64_t{1} << 28;
constexpr int64_t kMostBytes = int64_t{1} << 32;

class NGramsKernel final : public OpKernel {
 public:
  explicit NGramsKernel(const KernelConstruction& c)
      : separator_(c.attr<std::string>("separator")),
        left_pad_(c.attr<std::string>("left_pad")),
        right_pad_(c.attr<std::string>("right_pad")),
        widths_(c.attr<std::vector<int64_t>>("ngram_widths")),
        pad_width_(c.attr<int64_t>("pad_width")),
        preserves_short_(c.attr<bool>("preserve_short_sequences")) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    const std::string* values = data.data<std::string>();
    if (ctx.input(1).num_elements() == 0) {
      SetIntegers(ctx, 1, {});
      ctx.AllocateOutput(0, Shape{0});
      return;
    }
    const std::vector<int64_t> splits = SplitsOf(ctx.input(1), data.num_elements());
    CheckNumber(splits);
    std::vector<std::string> ngrams;
    std::vector<int64_t> ends = {0};
    int64_t bytes = 0;
    for (size_t row = 0; row + 1 < splits.size(); ++row) {
      AddRow(values + splits[row], splits[row + 1] - splits[row], &ngrams, &bytes);
      ends.push_back(static_cast<int64_t>(ngrams.size()));
    }
    SetIntegers(ctx, 1, ends);
    Tensor& out = ctx.AllocateOutput(0, Shape{static_cast<int64_t>(ngrams.size())});
    std::move(ngrams.begin(), ngrams.end(), out.data<std::string>());
  }

 private:
  // How many pads stand on each side of a row.
  int64_t PadsFor(int64_t width) const { return pad_width_ < 0 ? width - 1 : std::min(pad_width_, width - 1); }

  // Throws ResourceExhaustedError before a small file or model makes the kernel work for hours.
  void CheckNumber(const std::vector<int64_t>& splits) const {
    int64_t strings = 0;
    for (size_t row = 0; row + 1 < splits.size(); ++row) {
      for (const int64_t width : widths_) {
        const int64_t ngrams = splits[row + 1] - splits[row] + 2 * PadsFor(width) - width + 1;
        int64_t more = 0;
        if (ngrams <= 0) continue;
        if (__builtin_mul_overflow(ngrams, width, &more) || more > kMostStrings - strings) {
          throw ResourceExhaustedError(StrCat("expected n-grams of at most ", kMostStrings, " strings together; row ",
                                              row, " has ", ngrams, " of width ", width));
        }
        strings += more;
      }
    }
  }

  void AddRow(const std::string* row, int64_t length, std::vector<std::string>* ngrams, int64_t* bytes) const {
    const size_t before = ngrams->size();
    for (const int64_t width : widths_) {
      const int64_t pads = PadsFor(width);
      for (int64_t begin = -pads; begin + width <= length + pads; ++begin) {
        ngrams->push_back(Joined(row, length, begin, width, bytes));
      }
    }
    if (!preserves_short_ || length == 0 || ngrams->size() > before) return;
    const int64_t pads = std::max<int64_t>(pad_width_, 0);
    ngrams->push_back(Joined(row, length, -pads, length + 2 * pads, bytes));
  }

  // Joins the values of `row` from `begin` on. Before and behind them are pads. Adds the length of the result to
  // *bytes.
  std::string Joined(const std::string* row, int64_t length, int64_t begin, int64_t width, int64_t* bytes) const {
    std::string ngram;
    for (int64_t i = begin; i < begin + width; ++i) {
      if (i > begin) ngram += separator_;
      ngram += i < 0 ? left_pad_ : i < length ? row[i] : right_pad_;
      if (static_cast<int64_t>(ngram.size()) > kMostBytes - *bytes) {
        throw ResourceExhaustedError(StrCat("expected n-grams of at most ", kMostBytes, " bytes together"));
      }
    }
    *bytes += static_cast<int64_t>(ngram.size());
    return ngram;
  }

  const std::string separator_, left_pad_, right_pad_;
  const std::vector<int64_t> widths_;
  const int64_t pad_width_;
  const bool preserves_short_;
};

}  // namespace

void RegisterStringRowKernels(KernelRegistry& registry) {
  registry.RegisterFn("StringSplitV2", "CPU", StringSplitV2);
  registry.RegisterFn("UnicodeDecode", "CPU", UnicodeDecode);
  registry.RegisterFn("UnicodeEncode", "CPU", UnicodeEncode);
  registry.Register<NGramsKernel>("StringNGrams", "CPU");
}

}  // namespace cohort
