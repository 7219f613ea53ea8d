// A parser for TensorFlow's notation of ops. A Scanner reads one specification from left to right: words, quoted
// strings, numbers. The functions after it read types, sets, lists, shapes and defaults with it. The errors quote the
// specification.
#include "cohort/graph/op_def_parser.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// TensorFlow's types that Cohort does not have. They may occur in a set.
constexpr std::array<std::string_view, 16> kForeignTypes = {
    "half",   "float16", "complex64", "complex128", "int8",    "int16",  "uint16", "uint32",
    "uint64", "qint8",   "quint8",    "qint16",     "quint16", "qint32", "int4",   "uint4"};

constexpr std::array<DType, 6> kNumberTypes = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                                               DType::kUint8,   DType::kInt64,   DType::kBfloat16};

bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string LowerTypeName(std::string_view word) {
  if (word.substr(0, 3) != "DT_") return std::string(word);
  std::string name(word.substr(3));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

bool IsForeignType(std::string_view name) {
  for (const std::string_view type : kForeignTypes) {
    if (name == type) return true;
  }
  return false;
}

class Scanner {
 public:
  Scanner(const std::string& op, const std::string& spec, const char* what) : op_(op), spec_(spec), what_(what) {}

  [[noreturn]] void Fail(const std::string& expected) const {
    throw InvalidArgumentError(StrCat("[graph] op ", op_, ": the ", what_, " '", spec_, "' is malformed at character ",
                                      pos_, ": expected ", expected));
  }
  void SkipSpace() {
    while (pos_ < spec_.size() && (spec_[pos_] == ' ' || spec_[pos_] == '\n' || spec_[pos_] == '\t')) ++pos_;
  }
  bool Accept(std::string_view token) {
    SkipSpace();
    if (std::string_view(spec_).substr(pos_, token.size()) != token) return false;
    pos_ += token.size();
    return true;
  }
  void Expect(std::string_view token) {
    if (!Accept(token)) Fail(StrCat("'", token, "'"));
  }
  std::string Word(const std::string& expected) {
    SkipSpace();
    const size_t begin = pos_;
    while (pos_ < spec_.size() && IsWordChar(spec_[pos_])) ++pos_;
    if (pos_ == begin || (spec_[begin] >= '0' && spec_[begin] <= '9')) {
      pos_ = begin;
      Fail(expected);
    }
    return spec_.substr(begin, pos_ - begin);
  }
  bool AtQuote() {
    SkipSpace();
    return pos_ < spec_.size() && (spec_[pos_] == '\'' || spec_[pos_] == '"');
  }
  std::string Quoted() {
    if (!AtQuote()) Fail("a quoted string");
    const char quote = spec_[pos_];
    const size_t end = spec_.find(quote, pos_ + 1);
    if (end == std::string::npos) Fail("a closing quote");
    std::string text = spec_.substr(pos_ + 1, end - pos_ - 1);
    pos_ = end + 1;
    return text;
  }
  int64_t Int() {
    SkipSpace();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(spec_.data() + pos_, spec_.data() + spec_.size(), value);
    if (error != std::errc()) Fail("an integer");
    pos_ = static_cast<size_t>(end - spec_.data());
    return value;
  }
  float Float() {
    SkipSpace();
    char* end = nullptr;
    const float value = std::strtof(spec_.c_str() + pos_, &end);
    if (end == spec_.c_str() + pos_) Fail("a number");
    pos_ = static_cast<size_t>(end - spec_.c_str());
    return value;
  }
  void ExpectEnd() {
    SkipSpace();
    if (pos_ != spec_.size()) Fail("the end");
  }

 private:
  const std::string& op_;
  const std::string& spec_;
  const char* what_;
  size_t pos_ = 0;
};

DType ParseType(Scanner& scan) {
  const DType dtype = DTypeFromName(LowerTypeName(scan.Word("a dtype")));
  if (dtype == DType::kInvalid) scan.Fail("a dtype before this character");
  return dtype;
}

// Parses the rest of a set after its "{": quoted strings or types.
void ParseSet(Scanner& scan, AttrDef& def) {
  def.kind = scan.AtQuote() ? AttrKind::kString : AttrKind::kType;
  do {
    if (def.kind == AttrKind::kString) {
      def.allowed_strings.push_back(scan.Quoted());
      continue;
    }
    const std::string name = LowerTypeName(scan.Word("a dtype"));
    const DType dtype = DTypeFromName(name);
    if (dtype != DType::kInvalid) {
      def.allowed_types.push_back(dtype);
    } else if (!IsForeignType(name)) {
      scan.Fail("a dtype before this character");
    }
  } while (scan.Accept(","));
  scan.Expect("}");
  if (def.allowed_types.empty() && def.allowed_strings.empty()) scan.Fail("a set with at least one known dtype");
}

void ParseSimpleType(Scanner& scan, AttrDef& def) {
  if (scan.Accept("{")) return ParseSet(scan, def);
  const std::string word = scan.Word("an attribute type");
  if (word == "numbertype" || word == "realnumbertype") {
    def.kind = AttrKind::kType;
    def.allowed_types.assign(kNumberTypes.begin(), kNumberTypes.end());
    return;
  }
  for (const AttrKind kind : {AttrKind::kInt, AttrKind::kFloat, AttrKind::kBool, AttrKind::kString, AttrKind::kType,
                              AttrKind::kShape, AttrKind::kTensor, AttrKind::kFunc}) {
    if (word == AttrKindName(kind)) {
      def.kind = kind;
      return;
    }
  }
  scan.Fail("int, float, bool, string, type, shape, tensor, func, list(...) or {...} before this character");
}

AttrKind ListOf(Scanner& scan, AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt: return AttrKind::kListInt;
    case AttrKind::kFloat: return AttrKind::kListFloat;
    case AttrKind::kBool: return AttrKind::kListBool;
    case AttrKind::kString: return AttrKind::kListString;
    case AttrKind::kType: return AttrKind::kListType;
    case AttrKind::kShape: return AttrKind::kListShape;
    default: scan.Fail("a list of int, float, bool, string, type or shape");
  }
}

bool ParseBool(Scanner& scan) {
  const std::string word = scan.Word("true or false");
  if (word == "true") return true;
  if (word != "false") scan.Fail("true or false before this character");
  return false;
}

// Parses "[2,?]" and "<unknown>", as Shape prints them, and TensorFlow's "{ unknown_rank: true }" and "{ }".
Shape ParseShape(Scanner& scan) {
  if (scan.Accept("<unknown>")) return Shape::UnknownRank();
  if (scan.Accept("{")) {
    const bool unknown = scan.Accept("unknown_rank");
    if (unknown) {
      scan.Expect(":");
      scan.Expect("true");
    }
    scan.Expect("}");
    return unknown ? Shape::UnknownRank() : Shape();
  }
  scan.Expect("[");
  Shape shape;
  if (scan.Accept("]")) return shape;
  do {
    shape.AddDim(scan.Accept("?") ? Shape::kUnknownDim : scan.Int());
  } while (scan.Accept(","));
  scan.Expect("]");
  return shape;
}

template <typename T, typename Parse>
AttrValue ParseList(Scanner& scan, Parse parse) {
  std::vector<T> values;
  scan.Expect("[");
  if (!scan.Accept("]")) {
    do values.push_back(parse(scan));
    while (scan.Accept(","));
    scan.Expect("]");
  }
  return AttrValue(std::move(values));
}

// A vector of small numbers: "uint8[255, 0, 0]".
Tensor ParseTensor(Scanner& scan) {
  if (ParseType(scan) != DType::kUint8) scan.Fail("a tensor of uint8");
  const AttrValue numbers = ParseList<int64_t>(scan, [](Scanner& s) { return s.Int(); });
  std::vector<uint8_t> values;
  for (const int64_t value : *numbers.get<std::vector<int64_t>>()) {
    if (value < 0 || value > 255) scan.Fail("numbers from 0 to 255");
    values.push_back(static_cast<uint8_t>(value));
  }
  return Tensor::Vector(values);
}

AttrValue ParseDefault(Scanner& scan, AttrKind kind) {
  const auto parse_int = [](Scanner& s) { return s.Int(); };
  const auto parse_float = [](Scanner& s) { return s.Float(); };
  const auto parse_string = [](Scanner& s) { return s.Quoted(); };
  switch (kind) {
    case AttrKind::kInt: return scan.Int();
    case AttrKind::kFloat: return scan.Float();
    case AttrKind::kBool: return ParseBool(scan);
    case AttrKind::kString: return scan.Quoted();
    case AttrKind::kType: return ParseType(scan);
    case AttrKind::kShape: return ParseShape(scan);
    case AttrKind::kListInt: return ParseList<int64_t>(scan, parse_int);
    case AttrKind::kListFloat: return ParseList<float>(scan, parse_float);
    case AttrKind::kListBool: return ParseList<bool>(scan, ParseBool);
    case AttrKind::kListString: return ParseList<std::string>(scan, parse_string);
    case AttrKind::kListType: return ParseList<DType>(scan, ParseType);
    case AttrKind::kListShape: return ParseList<Shape>(scan, ParseShape);
    case AttrKind::kTensor: return ParseTensor(scan);
    case AttrKind::kFunc: break;
  }
  scan.Fail("no default for a function");
}

}  // namespace

ArgDef ParseArgSpec(const std::string& op, const std::string& spec) {
  Scanner scan(op, spec, "input or output");
  ArgDef arg;
  arg.name = scan.Word("a name");
  scan.Expect(":");
  std::string word = scan.Word("a dtype or the name of an attribute");
  if (scan.Accept("*")) {
    arg.number_attr = std::move(word);
    word = scan.Word("a dtype or the name of an attribute");
  }
  scan.ExpectEnd();
  const std::string type_name = LowerTypeName(word);
  arg.dtype = DTypeFromName(type_name);
  if (arg.dtype != DType::kInvalid) return arg;
  if (IsForeignType(type_name)) scan.Fail("a dtype that exists here; there is no " + type_name);
  arg.type_attr = std::move(word);
  return arg;
}

AttrDef ParseAttrSpec(const std::string& op, const std::string& spec) {
  Scanner scan(op, spec, "attribute");
  AttrDef def;
  def.name = scan.Word("a name");
  scan.Expect(":");
  if (scan.Accept("list(")) {
    ParseSimpleType(scan, def);
    scan.Expect(")");
    def.kind = ListOf(scan, def.kind);
  } else {
    ParseSimpleType(scan, def);
  }
  if (scan.Accept(">=")) {
    if (def.kind != AttrKind::kInt && def.kind < AttrKind::kListInt) scan.Fail("'>=' only after int or list(...)");
    def.minimum = scan.Int();
  }
  if (scan.Accept("=")) def.default_value = ParseDefault(scan, def.kind);
  scan.ExpectEnd();
  if (def.default_value) {
    const std::string problem = CheckAttrValue(def, *def.default_value);
    if (!problem.empty()) scan.Fail("another default: " + problem);
  }
  return def;
}

}  // namespace cohort
