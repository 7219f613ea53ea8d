#include "cohort/data/readers/readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/record_io.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/readers/idx.h"
#include "cohort/data/serialize.h"
#include "cohort/data/testing/drain.h"
#include "cohort/proto/example.pb.h"

namespace cohort::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

class ReadersTest : public ::testing::Test {
 protected:
  std::string Put(const std::string& name, const std::string& bytes) {
    WriteFileAtomically(folder_ / name, bytes);
    return folder_ / name;
  }
  const testing::TempFolder folder_;
};

// `window`: 15 zlib, 31 gzip.
std::string Deflated(const std::string& bytes, int window) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Elements as text, fields joined by '|'; "ERROR" in place of one that throws.
Strings Texts(Iterator& iterator, std::string* message = nullptr) {
  Strings all;
  Element element;
  for (int calls = 0; calls < 10000; ++calls) {
    try {
      if (!iterator.Next(&element)) return all;
      Strings fields;
      for (const Tensor& tensor : element) {
        fields.push_back(tensor.dtype() == DType::kString ? tensor.scalar<std::string>() : tensor.ToString());
      }
      all.push_back(StrJoin(fields, "|"));
    } catch (const Error& error) {
      if (message != nullptr) *message = error.what();
      all.emplace_back("ERROR");
    }
  }
  return all;
}
Strings Texts(const Dataset& dataset, std::string* message = nullptr) {
  return Texts(*dataset.MakeIterator(), message);
}

// At every element, through a description that was shipped.
void ExpectPositionsWork(const Dataset& dataset) {
  const Strings all = Texts(dataset);
  for (size_t at = 0; at <= all.size(); ++at) {
    const auto saved = dataset.MakeIterator();
    for (size_t i = 0; i < at; ++i) saved->Next();
    const auto restored = Deserialize(Serialize(dataset)).MakeIterator();
    restored->Restore(saved->Save());
    EXPECT_EQ(Texts(*restored), Strings(all.begin() + static_cast<std::ptrdiff_t>(at), all.end())) << at;
  }
}

TEST_F(ReadersTest, LinesOfAllFiles) {
  const std::string a = Put("a", "one\ntwo\r\n\nlast"), b = Put("b", ""), c = Put("c", "c\n");
  const Dataset lines = TextLineDataset({a, b, c});
  EXPECT_THAT(Texts(lines), ElementsAre("one", "two", "", "last", "c"));
  ExpectPositionsWork(lines);
  EXPECT_EQ(lines.Cardinality(), kUnknownCardinality);
}

TEST_F(ReadersTest, LinesLongerThanTheBuffer) {
  const std::string longer(700000, 'x');
  const std::string a = Put("a", longer + "\n" + longer + "y\nz\n");
  EXPECT_THAT(Texts(TextLineDataset({a})), ElementsAre(longer, longer + "y", "z"));
}

TEST_F(ReadersTest, PackedLines) {
  const std::string text = "one\ntwo\nthree\n";
  for (const auto& [compression, window] : {std::pair(Compression::kGzip, 31), std::pair(Compression::kZlib, 15)}) {
    const std::string packed = Deflated(text, window);
    const std::string path = Put("packed", packed);
    const Dataset lines = TextLineDataset({path}, compression);
    EXPECT_THAT(Texts(lines), ElementsAre("one", "two", "three"));
    ExpectPositionsWork(lines);
    std::string message;
    Put("packed", packed.substr(0, packed.size() - 5));
    EXPECT_THAT(Texts(lines, &message), ::testing::Contains("ERROR"));
    EXPECT_THAT(message, AllOf(HasSubstr(path), HasSubstr("cut off")));
    Put("packed", text);
    EXPECT_THAT(Texts(lines, &message), ElementsAre("ERROR"));
    EXPECT_THAT(message, HasSubstr("corrupt"));
  }
}

TEST_F(ReadersTest, AMissingFileIsToldAndTheNextOneRead) {
  std::string message;
  EXPECT_THAT(Texts(TextLineDataset({folder_ / "none", Put("a", "x\n")}), &message), ElementsAre("ERROR", "x"));
  EXPECT_THAT(message, AllOf(HasSubstr(folder_ / "none"), HasSubstr("(from stage TextLine()")));
}

TEST_F(ReadersTest, NamesOfFilesAreADataset) {
  const Dataset names = FileNames({Put("a", "1\n2\n"), Put("b", "3\n"), Put("c", "4\n")});
  EXPECT_THAT(Texts(TextLineDataset(names.Shard(2, 0))), ElementsAre("1", "2", "4"));
  EXPECT_EQ(Texts(TextLineDataset(names.Repeat(3))).size(), 12u);
  EXPECT_THROW(TextLineDataset(Dataset::Range(3)), InvalidArgumentError);
}

std::string Records(const Strings& payloads) {
  std::string bytes;
  for (const std::string& payload : payloads) EncodeRecord(payload, &bytes);
  return bytes;
}

TEST_F(ReadersTest, RecordsPlainAndPacked) {
  const Strings payloads = {"one", "", std::string(300000, 'x'), "last"};
  const std::string bytes = Records(payloads);
  const std::vector<std::pair<Compression, std::string>> cases = {{Compression::kNone, bytes},
                                                                  {Compression::kGzip, Deflated(bytes, 31)},
                                                                  {Compression::kZlib, Deflated(bytes, 15)}};
  for (const auto& [compression, packed] : cases) {
    const Dataset records = TFRecordDataset({Put("r", packed), Put("s", packed)}, compression);
    EXPECT_EQ(Texts(records.Take(4)), payloads);
    EXPECT_EQ(Texts(records).size(), 8u);
    ExpectPositionsWork(records);
  }
}

TEST_F(ReadersTest, PackedRecordsThatAreReadAsPlainOnesAreNamed) {
  const std::string bytes = Records({"one", "two"});
  for (const auto& [name, window] : {std::pair{"GZIP", 31}, std::pair{"ZLIB", 15}}) {
    std::string message;
    Texts(TFRecordDataset({Put("r", Deflated(bytes, window))}), &message);
    EXPECT_THAT(message, HasSubstr(StrCat("packed with ", name,
                                          ": read it with TFRecordDataset, and say "
                                          "so in its `compression`")));
  }
}

TEST_F(ReadersTest, DamagedRecordsAreToldAndTheNextFileRead) {
  std::string bytes = Records({"one", "two"});
  const std::string good = Put("good", Records({"good"}));
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (size == Records({"one"}).size()) continue;
    const Strings texts = Texts(TFRecordDataset({Put("r", bytes.substr(0, size)), good}));
    ASSERT_GE(texts.size(), 2u) << size;
    EXPECT_EQ(texts[texts.size() - 2], "ERROR") << size;
    EXPECT_EQ(texts.back(), "good");
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    std::string message;
    EXPECT_THAT(Texts(TFRecordDataset({Put("r", flipped)}), &message), ::testing::Contains("ERROR")) << at;
    EXPECT_THAT(message, HasSubstr(folder_ / "r"));
  }
}

TEST_F(ReadersTest, CsvTypesDefaultsAndQuotes) {
  const std::string path = Put("t.csv",
                               "f,i,s\n"
                               "1.5,2,plain\n"
                               "+2e1, -3 ,\"quoted, \"\"two\"\"\nlines\"\r\n"
                               ",NA,\n");
  const CsvOptions options{.header = true, .na_value = "NA"};
  const Dataset csv = CsvDataset({path},
                                 {{DType::kFloat32, Tensor::Scalar(-1.0f)},
                                  {DType::kInt64, Tensor::Scalar(int64_t{-2})},
                                  {DType::kString, Tensor::Scalar("none")}},
                                 options);
  EXPECT_THAT(Texts(csv),
              ElementsAre("float32[] [1.5]|int64[] [2]|plain", "float32[] [20]|int64[] [-3]|quoted, \"two\"\nlines",
                          "float32[] [-1]|int64[] [-2]|none"));
  ExpectPositionsWork(csv);
}

TEST_F(ReadersTest, CsvSelectsColumns) {
  const std::string path = Put("t.csv", "1;2;3;4\n5;6;7\n");
  CsvOptions options;
  options.delimiter = ';';
  options.select_columns = {0, 2};
  const Dataset csv = CsvDataset({path}, {{DType::kInt32}, {DType::kFloat64}}, options);
  EXPECT_THAT(Texts(csv), ElementsAre("int32[] [1]|float64[] [3]", "int32[] [5]|float64[] [7]"));
  options.select_columns = {2, 0};
  EXPECT_THROW(CsvDataset({path}, {{DType::kInt32}, {DType::kFloat64}}, options), InvalidArgumentError);
  EXPECT_THROW(CsvDataset({path}, {{DType::kBool}}), InvalidArgumentError);
  EXPECT_THROW(CsvDataset({path}, {}), InvalidArgumentError);
}

TEST_F(ReadersTest, CsvFindsColumnsByTheirNames) {
  const std::string one = Put("one.csv", "\xef\xbb\xbf\"id\",name,price\n1,a,2.5\n\n2,b,0.5\n");
  const std::string two = Put("two.csv", "price,id\n7,3\n");
  const Dataset csv = CsvDataset({one, two}, {{.dtype = DType::kFloat32, .name = "price"}, {DType::kInt64, {}, "id"}},
                                 {.header = true});
  EXPECT_THAT(Texts(csv),
              ElementsAre("float32[] [2.5]|int64[] [1]", "float32[] [0.5]|int64[] [2]", "float32[] [7]|int64[] [3]"));
  ExpectPositionsWork(csv);
  std::string message;
  EXPECT_THAT(Texts(CsvDataset({one, two}, {{.name = "pryce"}}, {.header = true}), &message),
              ElementsAre("ERROR", "ERROR"));
  EXPECT_THAT(message, AllOf(HasSubstr("expected one column 'pryce' in the first line of " + two),
                             HasSubstr("its columns are: price, id"), HasSubstr("did you mean price?")));
  const std::string twice = Put("twice.csv", "a,a\n1,2\n");
  EXPECT_THAT(Texts(CsvDataset({twice}, {{.name = "a"}}, {.header = true})), ElementsAre("ERROR"));
  EXPECT_THROW(CsvDataset({one}, {{.name = "a"}}), InvalidArgumentError);
  EXPECT_THROW(CsvDataset({one}, {{.name = "a"}, {}}, {.header = true}), InvalidArgumentError);
}

TEST_F(ReadersTest, CsvPassesOverTheMarkOfUtf8AndBlankLines) {
  const std::vector<CsvColumn> columns = {{DType::kInt64}, {DType::kInt64}};
  EXPECT_THAT(Texts(CsvDataset({Put("mark.csv",
                                    "\xef\xbb\xbf"
                                    "1,2\n\n\r\n3,4\n\n")},
                               columns)),
              ElementsAre("int64[] [1]|int64[] [2]", "int64[] [3]|int64[] [4]"));
  EXPECT_THAT(Texts(CsvDataset({Put("part.csv",
                                    "\xef\xbb"
                                    "a\n\n")},
                               {{DType::kString}})),
              ElementsAre("\xef\xbb"
                          "a",
                          "ERROR"));  // a blank line is an empty field of a single column
}

TEST_F(ReadersTest, FilesAreFoundByPatterns) {
  const std::string b = Put("b.csv", ""), a = Put("a.csv", ""), other = Put("c.txt", ""), hidden = Put(".x.json", "");
  const std::string all = folder_ / "*.csv";
  EXPECT_THAT(MatchingFiles({all, b, folder_ / "?.txt"}), ElementsAre(a, b, other));
  EXPECT_THAT(Texts(ListFiles({all}, {.shuffle = false})), ElementsAre(a, b));
  EXPECT_THAT(Texts(ListFiles({all}, {.seed = 1}).Repeat(2)), ::testing::UnorderedElementsAre(a, b, a, b));
  EXPECT_THAT(MessageOf<NotFoundError>([&] { ListFiles({all, folder_ / "*.xml"}); }), HasSubstr("*.xml"));
  EXPECT_THAT(MatchingFiles({folder_ / "*.json", folder_ / "*x*"}), ElementsAre(hidden, other));  // as in TensorFlow
  EXPECT_THROW(ListFiles({}), InvalidArgumentError);
}

TEST_F(ReadersTest, ErrorsAreIgnored) {
  const std::string path = Put("some.csv", "1\nx\n2\ny\nz\n3\n");
  const Dataset csv = CsvDataset({path, folder_ / "missing.csv", path}, {{DType::kInt64}}).IgnoreErrors().Batch(2);
  EXPECT_THAT(Texts(csv), ElementsAre("int64[2] [1, 2]", "int64[2] [3, 1]", "int64[2] [2, 3]"));
  ExpectPositionsWork(csv);
  int calls = 0;
  const auto fail = [&calls](const Element&) -> Element {
    ++calls;
    throw InvalidArgumentError("never");
  };
  const Dataset never = Dataset::Range(5).Repeat().Map(fail, {{DType::kInt64, Shape()}}).IgnoreErrors(false);
  Element element;
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { never.MakeIterator()->Next(&element); }),
              AllOf(HasSubstr("1000 attempts"), HasSubstr("never")));
  EXPECT_EQ(calls, 1000);
  EXPECT_EQ(Dataset::Range(5).IgnoreErrors().Cardinality(), kUnknownCardinality);
  const Dataset missing = CsvDataset({folder_ / "missing.csv"}, {{DType::kInt64}}).IgnoreErrors();
  EXPECT_THAT(MessageOf<NotFoundError>([&] { missing.MakeIterator()->Next(&element); }),
              AllOf(HasSubstr("expected one element that can be made"), HasSubstr("missing.csv")));
}

TEST_F(ReadersTest, WrongCsvLinesAreToldAndTheNextOneRead) {
  const std::string path = Put("t.csv", "1,2\n1\nx,2\n+-5,1\n3,\n\"4\"5,6\n7,8,9\n3.5,1\n5,6\n");
  std::string message;
  EXPECT_THAT(Texts(CsvDataset({path}, {{DType::kInt32}, {DType::kInt32}}), &message),
              ElementsAre("int32[] [1]|int32[] [2]", "ERROR", "ERROR", "ERROR", "ERROR", "ERROR", "ERROR", "ERROR",
                          "int32[] [5]|int32[] [6]"));
  EXPECT_THAT(message, HasSubstr("expected a valid int32 in column 0; got '3.5'; line 8 of " + path));
}

TEST_F(ReadersTest, IdxFilesAreSlices) {
  const Tensor images = Tensor::FromValues<uint8_t>(std::vector<uint8_t>{1, 2, 3, 4, 5, 6}, Shape{3, 2, 1});
  WriteIdx(folder_ / "images", images);
  WriteIdx(folder_ / "labels", Tensor::Vector<uint8_t>({7, 8, 9}));
  const Dataset dataset = IdxDataset({folder_ / "images", folder_ / "labels"});
  EXPECT_EQ(ToString(dataset.element_spec()), "(uint8[2,1], uint8[])");
  EXPECT_EQ(dataset.Cardinality(), 3);
  const SerializedDataset serialized = Serialize(dataset.Shuffle(3, 1));
  EXPECT_TRUE(serialized.tensors.empty());
  EXPECT_EQ(Deserialize(serialized).Batch(3).MakeIterator()->Next()[1].num_elements(), 3);
  EXPECT_THROW(IdxDataset({folder_ / "none"}), NotFoundError);
}

std::string ExampleBytes() {
  proto::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  for (const float value : {1.5f, -2.0f}) features["floats"].mutable_float_list()->add_value(value);
  features["label"].mutable_int64_list()->add_value(7);
  features["name"].mutable_bytes_list()->add_value("abc");
  features["empty"];
  return example.SerializeAsString();
}

Dataset Examples(const Strings& records) { return Dataset::FromTensorSlices({Tensor::Vector(records)}); }

TEST(ParseExampleTest, FixedVariableAndDefault) {
  const std::vector<Feature> features = {{"label", DType::kInt64, {}},
                                         {"floats", DType::kFloat32, {2, 1}},
                                         {.name = "name", .dtype = DType::kString, .variable_length = true},
                                         {.name = "absent", .dtype = DType::kInt64, .variable_length = true},
                                         {"other", DType::kFloat32, {2}, Tensor::Vector<float>({8, 9})},
                                         {"empty", DType::kInt64, {}, Tensor::Scalar(int64_t{-1})}};
  const Dataset parsed = ParseExampleDataset(Examples({ExampleBytes()}), features);
  EXPECT_EQ(ToString(parsed.element_spec()), "(int64[], float32[2,1], string[?], int64[?], float32[2], int64[])");
  for (const Dataset& dataset : {parsed, Deserialize(Serialize(parsed))}) {
    const Element element = dataset.MakeIterator()->Next();
    EXPECT_EQ(element[0].scalar<int64_t>(), 7);
    EXPECT_THAT(element[1].ToVector<float>(), ElementsAre(1.5f, -2.0f));
    EXPECT_THAT(element[2].ToVector<std::string>(), ElementsAre("abc"));
    EXPECT_EQ(element[3].num_elements(), 0);
    EXPECT_THAT(element[4].ToVector<float>(), ElementsAre(8, 9));
    EXPECT_EQ(element[5].scalar<int64_t>(), -1);
  }
}

TEST(ParseExampleTest, Batches) {
  const Dataset batches = Examples({ExampleBytes(), ExampleBytes(), ExampleBytes()}).Batch(2);
  const Dataset parsed = ParseExampleDataset(batches, {{"floats", DType::kFloat32, {2}}}, {.num_parallel_calls = 2});
  EXPECT_EQ(ToString(parsed.element_spec()), "(float32[?,2])");
  const auto iterator = parsed.MakeIterator();
  EXPECT_EQ(iterator->Next()[0].shape(), (Shape{2, 2}));
  EXPECT_EQ(iterator->Next()[0].shape(), (Shape{1, 2}));
}

TEST(ParseExampleTest, SaysWhatDoesNotFit) {
  const auto message = [](const std::string& record, const Feature& feature) -> std::string {
    try {
      ParseExampleDataset(Examples({record}), {feature}).MakeIterator()->Next();
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(ExampleBytes(), {"absent", DType::kInt64, {}}),
              HasSubstr("Feature: absent (data type: int64) is required but could not be found"));
  EXPECT_THAT(message(ExampleBytes(), {"label", DType::kFloat32, {}}),
              HasSubstr("expected float32 values of the feature 'label'; got int64"));
  EXPECT_THAT(message(ExampleBytes(), {"floats", DType::kFloat32, {3}}), HasSubstr("expected 3 values"));
  EXPECT_THAT(message("\x0a\xff", {"label", DType::kInt64, {}}), HasSubstr("expected a serialized tf.Example"));
  EXPECT_THROW(ParseExampleDataset(Examples({""}), {{"x", DType::kInt32, {}}}), InvalidArgumentError);
  EXPECT_THROW(ParseExampleDataset(Dataset::Range(3), {{"x", DType::kInt64, {}}}), InvalidArgumentError);
  EXPECT_THROW(ParseExampleDataset(Examples({""}), {{"x", DType::kInt64, {2}, Tensor::Scalar(int64_t{1})}}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::data
