// Ops on texts: they change case, cut, join, split and search strings, and turn them into numbers. The names, arguments
// and results are those of TensorFlow's ops. A string is a sequence of bytes. If an op reads characters, the bytes are
// UTF-8. The ops run on the host on every device, and have no gradient.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// What positions and lengths count.
enum class StringUnit { kByte, kUtf8Char };

// Return each string of `input` with the letters A to Z in lower case, or a to z in upper case. Other bytes, such as
// those of "é", stay as they are. (TensorFlow's encoding "utf-8", which changes all letters of Unicode, is not there: a
// graph that has it is refused with UnimplementedError.)
COHORT_EXPORT Output StringLower(Output input, const NodeName& name = "");
COHORT_EXPORT Output StringUpper(Output input, const NodeName& name = "");
// Returns each string without the white space at its begin and end. White space is a space, \t, \n, \v, \f or \r.
COHORT_EXPORT Output StringStrip(Output input, const NodeName& name = "");
// Returns the length of each string as int32. In the unit kUtf8Char each byte counts but those that continue a
// character (0x80 to 0xBF). Nothing checks whether the bytes are UTF-8.
COHORT_EXPORT Output StringLength(Output input, StringUnit unit = StringUnit::kByte, const NodeName& name = "");

// Returns the inputs joined elementwise, with `separator` between them. Each input is a scalar, or has the shape of the
// result. Throws InvalidArgumentError for no input, and for inputs of different shapes that are not scalars.
COHORT_EXPORT Output StringJoin(const std::vector<Output>& inputs, const std::string& separator = "",
                                const NodeName& name = "");
// Returns for each string the part that begins at `pos` and has at most `len` units. A negative `pos` counts from the
// end. In the unit kByte a negative `len` means the whole rest; in kUtf8Char it means nothing. `pos` and `len` are
// int32 or int64, of the same dtype and shape, which is broadcast with the shape of `input`. The step fails with
// InvalidArgumentError for a `pos` outside of a string.
COHORT_EXPORT Output Substr(Output input, const Operand& pos, const Operand& len, StringUnit unit = StringUnit::kByte,
                            const NodeName& name = "");

// Returns each string with the matches of `pattern` replaced by `rewrite`, or only the first match if not
// `replace_global`. `pattern` is a regular expression in the syntax of RE2. In `rewrite`, \1 to \9 stand for the groups
// of the match, and \0 for all of it. Bytes that are not UTF-8 match no character. As in TensorFlow these are the op
// StaticRegexReplace if both are texts, and RegexReplace if they are scalars of the graph. A pattern that is not a
// regular expression fails the step with InvalidArgumentError, and so does a rewrite that has a \ before another
// character, or a group that the pattern does not have. (TensorFlow then leaves the strings unchanged.)
COHORT_EXPORT Output RegexReplace(Output input, const std::string& pattern, const std::string& rewrite,
                                  bool replace_global = true, const NodeName& name = "");
COHORT_EXPORT Output RegexReplace(Output input, Output pattern, Output rewrite, bool replace_global = true,
                                  const NodeName& name = "");
// Returns for each string whether the whole string matches the pattern. The ops are StaticRegexFullMatch and
// RegexFullMatch. A pattern that is not a regular expression fails the step with InvalidArgumentError.
COHORT_EXPORT Output RegexFullMatch(Output input, const std::string& pattern, const NodeName& name = "");
COHORT_EXPORT Output RegexFullMatch(Output input, Output pattern, const NodeName& name = "");

// Returns each string as a number of the dtype `out_type`: float32, float64, int32 or int64. White space around the
// number does not count. As in TensorFlow, floating numbers may be "inf", "nan" or hexadecimal (0x10), and numbers out
// of range become infinite or 0. A string that is not a number, and an integer out of range, fail the step with
// InvalidArgumentError, which shows the string.
COHORT_EXPORT Output StringToNumber(Output input, DType out_type = DType::kFloat32, const NodeName& name = "");

// Strings in rows of different lengths, in TensorFlow's form of a sparse tensor.
struct COHORT_EXPORT SparseStrings {
  Output indices;      // int64 [n, 2]: row and column of each string, sorted
  Output values;       // string [n]
  Output dense_shape;  // int64 [2]: the number of rows, and the length of the longest row
};
// Splits each string of `input` [rows] at `sep`. If `sep` is "", splits at runs of white space (see StringStrip), and
// no part is empty but the rest behind the last split (see below). Otherwise "a,,b" split at "," has the parts "a", ""
// and "b". If `maxsplit` is not negative, the rest stays unsplit after so many splits, and may be "". The op
// StringSplitV2. Throws InvalidArgumentError for another rank.
COHORT_EXPORT SparseStrings StringSplitV2(Output input, const std::string& sep = "", int64_t maxsplit = -1,
                                          const NodeName& name = "");
// As StringSplitV2, and returns [rows, longest row], with `default_value` behind the parts of shorter rows.
COHORT_EXPORT Output StringSplit(Output input, const std::string& sep = "", const std::string& default_value = "",
                                 int64_t maxsplit = -1, const NodeName& name = "");

// Values in rows of different lengths, in TensorFlow's form of a ragged tensor.
struct COHORT_EXPORT RowSplits {
  Output values;      // [n]
  Output row_splits;  // int64 [rows + 1]: row i is values[row_splits[i]] to values[row_splits[i + 1] - 1]
};
// Returns the characters of each string of `input` [rows] as int32. Bytes that are not UTF-8 become U+FFFD, one for
// each maximal part of a character, as the Unicode standard recommends. The op UnicodeDecode.
COHORT_EXPORT RowSplits UnicodeDecode(Output input, const NodeName& name = "");
// The reverse: returns [rows], the text of each row of characters in UTF-8. A number that is no character becomes
// U+FFFD. The op UnicodeEncode.
COHORT_EXPORT Output UnicodeEncode(const RowSplits& characters, const NodeName& name = "");

struct COHORT_EXPORT StringNGramsOptions {
  std::string separator = " ";
  std::string left_pad;  // stands before a row, and right_pad behind it, up to pad_width times
  std::string right_pad;
  int64_t pad_width = 0;  // -1: the width of the n-gram minus 1
  bool preserve_short_sequences = false;
};
// Returns the n-grams of each row of strings: all sequences of so many neighbours, joined by the separator. First come
// those of the first width. A row that is shorter than the width (with its pads) has none of this width. If
// `preserve_short_sequences`, a row that would have no n-gram at all, but is not empty, becomes one n-gram. Throws
// InvalidArgumentError for widths or pad widths out of range (from 1 or -1 to 2^20). N-grams of more than 2^28 strings,
// or of more than 4 GiB, together fail the step with ResourceExhaustedError.
COHORT_EXPORT RowSplits StringNGrams(const RowSplits& data, const std::vector<int64_t>& ngram_widths,
                                     const StringNGramsOptions& options = {}, const NodeName& name = "");

}  // namespace cohort::ops
