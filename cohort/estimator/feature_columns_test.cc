// The expected values are those of tf.compat.v1.feature_column of TensorFlow 2.15.
#include "cohort/estimator/feature_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/variables.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"

namespace cohort::feature_column {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Strings = std::vector<std::string>;
using Rows = std::vector<std::vector<float>>;

class FeatureColumnsTest : public ::testing::Test {
 protected:
  FeatureColumnsTest() {
    RegisterAll();
    features_ = {
        {"age", ops::Const(graph_, Tensor::FromValues<float>({0.1f, 0.5f, 0.9f}, Shape{3, 1}))},
        {"job", ops::Const(graph_, Tensor::FromValues<std::string>({"a", "bb", "", "c", "a", ""}, Shape{3, 2}))},
        {"id", ops::Const(graph_, Tensor::FromValues<int32_t>({1, 2, 3, -1, -1, -1}, Shape{3, 2}))}};
  }
  std::vector<Tensor> Run(const std::vector<Output>& values) {
    Session session(graph_);
    session.Run(ops::GlobalVariablesInitializer(graph_));
    return session.Run(values);
  }
  Rows RowsOf(const Output& value) {
    const Tensor all = Run({value})[0];
    Rows rows;
    const int64_t columns = all.shape().dim(1);
    for (int64_t i = 0; i < all.shape().dim(0); ++i) {
      rows.emplace_back(all.data<float>() + i * columns, all.data<float>() + (i + 1) * columns);
    }
    return rows;
  }
  Rows Inputs(const ColumnPtr& column) { return RowsOf(InputLayer(features_, {column})); }
  Rows Counts(const ColumnPtr& categorical) { return Inputs(IndicatorColumn(categorical)); }
  std::string WhyNot(const std::function<ColumnPtr()>& make) {
    return MessageOf<InvalidArgumentError>([&] { RowsOf(InputLayer(features_, {make()})); });
  }

  Graph graph_;
  Features features_;
};

ColumnPtr AgeGroup() { return BucketizedColumn(NumericColumn("age"), {0.3f, 0.6f}); }

TEST_F(FeatureColumnsTest, NumbersAreNormalizedAndCutIntoIntervals) {
  const ColumnPtr age = NumericColumn("age", {.normalizer_fn = [](Output v) { return v * 10.0f; }});
  EXPECT_EQ(Inputs(age), (Rows{{1}, {5}, {9}}));
  EXPECT_EQ(Inputs(BucketizedColumn(age, {5, 6})), (Rows{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}));
  const ColumnPtr both = BucketizedColumn(NumericColumn("id", {.shape = {2}}), {0, 2});
  EXPECT_EQ(Inputs(both), (Rows{{0, 1, 0, 0, 0, 1}, {0, 0, 1, 1, 0, 0}, {1, 0, 0, 1, 0, 0}}));
  // As categories, the second number has intervals of its own.
  EXPECT_EQ(Counts(both), Inputs(both));
}

TEST_F(FeatureColumnsTest, EmptyStringsAndMinusOneAreNoCategories) {
  EXPECT_EQ(Counts(CategoricalColumnWithHashBucket("job", 5)),
            (Rows{{0, 0, 1, 0, 1}, {0, 0, 1, 0, 0}, {0, 0, 0, 0, 1}}));
  EXPECT_EQ(Counts(CategoricalColumnWithHashBucket("id", 6)),
            (Rows{{0, 1, 0, 1, 0, 0}, {0, 0, 0, 1, 0, 0}, {0, 0, 0, 0, 0, 0}}));
  EXPECT_EQ(Counts(CategoricalColumnWithIdentity("id", 4)), (Rows{{0, 1, 1, 0}, {0, 0, 0, 1}, {0, 0, 0, 0}}));
  EXPECT_EQ(Counts(CategoricalColumnWithIdentity("id", 3, 0)), (Rows{{0, 1, 1}, {1, 0, 0}, {0, 0, 0}}));
}

TEST_F(FeatureColumnsTest, VocabulariesHaveADefaultOrFurtherBuckets) {
  EXPECT_EQ(Counts(CategoricalColumnWithVocabularyList("job", Strings{"c", "a"})), (Rows{{0, 1}, {1, 0}, {0, 1}}));
  EXPECT_EQ(Counts(CategoricalColumnWithVocabularyList("job", Strings{"c", "a"}, {.default_value = 0})),
            (Rows{{1, 1}, {1, 0}, {0, 1}}));
  EXPECT_EQ(Counts(CategoricalColumnWithVocabularyList("job", Strings{"c", "a"}, {.num_oov_buckets = 3})),
            (Rows{{0, 1, 0, 0, 1}, {1, 0, 0, 0, 0}, {0, 1, 0, 0, 0}}));
  const testing::TempFolder folder;
  WriteFileAtomically(folder / "words.txt", "c\r\na\r\n");
  EXPECT_EQ(Counts(CategoricalColumnWithVocabularyFile("job", folder / "words.txt")), (Rows{{0, 1}, {1, 0}, {0, 1}}));
}

TEST_F(FeatureColumnsTest, AVocabularyWithAnEmptyLineIsRefused) {
  const testing::TempFolder folder;
  WriteFileAtomically(folder / "words.txt", "c\n\na\n");
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] { CategoricalColumnWithVocabularyFile("job", folder / "words.txt"); }),
      HasSubstr("line 2 is empty"));
}

TEST_F(FeatureColumnsTest, CrossesHashAllCombinations) {
  const ColumnPtr groups = CrossedColumn({AgeGroup(), "job"}, 10);
  EXPECT_EQ(NameOf(groups), "age_bucketized_X_job");
  EXPECT_EQ(Counts(groups),
            (Rows{{0, 1, 0, 0, 0, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, {0, 0, 0, 1, 0, 0, 0, 0, 0, 1}}));
  EXPECT_EQ(Counts(CrossedColumn({"job", CategoricalColumnWithIdentity("id", 9)}, 12)),
            (Rows{{0, 1, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0}, {0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0}, std::vector<float>(12)}));
}

// A value that is not in the vocabulary has the number -1, which is crossed as any other.
TEST_F(FeatureColumnsTest, ACrossCountsValuesThatAreNotInAVocabulary) {
  features_["job"] = ops::Const(graph_, Tensor::FromValues<std::string>({"zz", "a", "", "c", "a", ""}, Shape{3, 2}));
  const ColumnPtr job = CategoricalColumnWithVocabularyList("job", Strings{"c", "a"});
  EXPECT_EQ(Counts(CrossedColumn({job, CategoricalColumnWithIdentity("id", 9)}, 12)),
            (Rows{{0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 0, 0}, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, std::vector<float>(12)}));
}

TEST_F(FeatureColumnsTest, NumbersAreNormalizedInTheirOwnDtype) {
  features_["time"] = ops::Const(graph_, Tensor::Vector<int64_t>({1700000123, 1700000124, 1700000000}));
  const ColumnPtr time = NumericColumn("time", {.normalizer_fn = [](Output x) { return x - 1700000000; }});
  EXPECT_EQ(Inputs(time), (Rows{{123}, {124}, {0}}));
}

TEST_F(FeatureColumnsTest, AnExampleWithOtherNumbersThanItsColumnFailsTheStep) {
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{-1, -1}, "x");
  features_["x"] = x;
  const Output input = InputLayer(features_, {NumericColumn("x")});
  Session session(graph_);
  EXPECT_EQ(session.Run({{x, Tensor::Zeros(DType::kFloat32, Shape{2, 1})}}, {input})[0].shape(), (Shape{2, 1}));
  EXPECT_THROW(session.Run({{x, Tensor::Zeros(DType::kFloat32, Shape{2, 2})}}, {input}), InvalidArgumentError);
}

TEST_F(FeatureColumnsTest, NamesThatVariablesMayNotHave) {
  features_["a b"] = features_["age"];
  LinearModel(features_, {NumericColumn("a b")});
  EXPECT_EQ(ops::Variable(graph_.variables().front()).name(), "linear_model/a_b/weights");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { InputLayer(features_, {NumericColumn("a b")}); }),
              HasSubstr("letters, digits and _ . - / only, because variables have them; got 'a b'"));
}

TEST_F(FeatureColumnsTest, EmbeddingsCombineTheRowsOfAnExample) {
  Tensor table(DType::kFloat32, Shape{9, 2});
  for (int i = 0; i < 18; ++i) table.data<float>()[i] = static_cast<float>(i);
  const ColumnPtr id = CategoricalColumnWithIdentity("id", 9);
  const auto rows = [&](const std::string& combiner) {
    return Inputs(EmbeddingColumn(id, 2, {.combiner = combiner, .initializer = initializers::Constant(table)}));
  };
  EXPECT_EQ(rows("mean"), (Rows{{3, 4}, {6, 7}, {0, 0}}));
  EXPECT_EQ(rows("sum"), (Rows{{6, 8}, {6, 7}, {0, 0}}));
  const Rows sqrtn = rows("sqrtn");
  EXPECT_NEAR(sqrtn[0][0], 4.2426405f, 1e-6);
  EXPECT_NEAR(sqrtn[0][1], 5.6568542f, 1e-6);
  EXPECT_EQ(sqrtn[1], (std::vector<float>{6, 7}));
}

TEST_F(FeatureColumnsTest, OnlyRowsOfTheExamplesGetAGradient) {
  InputLayer(features_, {EmbeddingColumn(CategoricalColumnWithIdentity("id", 9), 2)});
  const ops::Variable table(graph_.variables().front());
  EXPECT_EQ(table.name(), "input_layer/id_embedding/embedding_weights");
  EXPECT_EQ(table.shape(), (Shape{9, 2}));
  const Output again = LinearModel(features_, {CategoricalColumnWithIdentity("id", 9)}, {.units = 2});
  const ops::Variable weights(graph_.variables()[1]);
  EXPECT_EQ(weights.name(), "linear_model/id/weights");
  const Gradient gradient = Gradients({ops::Sum(again)}, {weights.handle()})[0];
  ASSERT_TRUE(gradient.is_sparse());
  EXPECT_THAT(Run({gradient.indices})[0].ToVector<int64_t>(), ElementsAre(1, 2, 3));
}

TEST_F(FeatureColumnsTest, ColumnsStandInTheOrderOfTheirNames) {
  const Output both =
      InputLayer(features_, {IndicatorColumn(CategoricalColumnWithIdentity("id", 4)), NumericColumn("age")});
  EXPECT_EQ(RowsOf(both)[0], (std::vector<float>{0.1f, 0, 1, 1, 0}));
}

TEST_F(FeatureColumnsTest, FeaturesThatDoNotFitAreNamed) {
  EXPECT_THAT(MessageOf<NotFoundError>([&] { InputLayer(features_, {NumericColumn("height")}); }),
              AllOf(HasSubstr("'height'"), HasSubstr("[age, id, job]")));
  EXPECT_THAT(WhyNot([] { return NumericColumn("job", {.shape = {2}}); }),
              HasSubstr("numbers of shape [?,2] for column 'job'; got string[3,2]"));
  EXPECT_THAT(WhyNot([] { return NumericColumn("id"); }), HasSubstr("numbers of shape [?,1] for column 'id'"));
  EXPECT_THAT(WhyNot([] { return IndicatorColumn(CategoricalColumnWithIdentity("age", 3)); }),
              HasSubstr("strings, int32 or int64 as feature 'age' for column 'age'; got float32"));
  EXPECT_THAT(WhyNot([] { return IndicatorColumn(CategoricalColumnWithIdentity("id", 3)); }),
              HasSubstr("expected numbers in [0, 3) as feature 'id'; got"));
  EXPECT_THAT(WhyNot([] { return IndicatorColumn(CategoricalColumnWithVocabularyList("id", Strings{"a"})); }),
              HasSubstr("expected string for column 'id'; got int64"));
  EXPECT_THAT(WhyNot([] { return CategoricalColumnWithIdentity("id", 9); }),
              AllOf(HasSubstr("the categorical column 'id'"), HasSubstr("EmbeddingColumn or an IndicatorColumn")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { InputLayer({}, {NumericColumn("age")}); }),
              HasSubstr("Let the input function return the names"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                LinearModel(features_, {NumericColumn("age"), NumericColumn("age")});
              }),
              HasSubstr("'age' twice"));
}

TEST_F(FeatureColumnsTest, ColumnsThatMakeNoSenseAreRefused) {
  const ColumnPtr age = NumericColumn("age"), id = CategoricalColumnWithIdentity("id", 9);
  const auto why = [](const std::function<void()>& make) { return MessageOf<InvalidArgumentError>(make); };
  EXPECT_THAT(why([&] { BucketizedColumn(age, {2, 1}); }), HasSubstr("ascending order for column 'age_bucketized'"));
  EXPECT_THAT(why([&] { BucketizedColumn(id, {1}); }), HasSubstr("expected a NumericColumn; got 'id'"));
  EXPECT_THAT(why([&] { NumericColumn("age", {.shape = {-1}}); }), HasSubstr("dimensions are known"));
  EXPECT_THAT(why([&] { BucketizedColumn(age, {NAN}); }), HasSubstr("ascending order for column 'age_bucketized'"));
  EXPECT_THAT(why([&] { CategoricalColumnWithIdentity("id", 0); }), HasSubstr("num_buckets of at least 1"));
  EXPECT_THAT(why([&] { CategoricalColumnWithIdentity("id", 3, 3); }), HasSubstr("default value in [0, 3)"));
  EXPECT_THAT(why([&] { CategoricalColumnWithHashBucket("id", 0); }), HasSubstr("hash_bucket_size of at least 1"));
  EXPECT_THAT(why([&] {
                CategoricalColumnWithVocabularyList("job", Strings{"a", "a"});
              }),
              AllOf(HasSubstr("\"a\""), HasSubstr("column 'job'")));
  EXPECT_THAT(why([&] {
                CategoricalColumnWithVocabularyList("job", Strings{"a"}, {.default_value = 0, .num_oov_buckets = 1});
              }),
              HasSubstr("either a default value or num_oov_buckets"));
  for (const int64_t buckets : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(why([&] { CategoricalColumnWithVocabularyList("job", Strings{"a"}, {.num_oov_buckets = buckets}); }),
                HasSubstr(StrCat("num_oov_buckets in [0, 2^40] for feature 'job'; got ", buckets)));
  }
  EXPECT_THAT(why([&] { CrossedColumn({"job"}, 3); }), HasSubstr("at least two keys; got 1"));
  EXPECT_THAT(why([&] { CrossedColumn({"job", age}, 3); }), HasSubstr("the dense column 'age'"));
  EXPECT_THAT(why([&] {
                CrossedColumn({"job", CategoricalColumnWithHashBucket("id", 3)}, 3);
              }),
              HasSubstr("give the key 'id'"));
  EXPECT_THAT(why([&] { EmbeddingColumn(age, 2); }), HasSubstr("the dense column 'age'"));
  EXPECT_THAT(why([&] { EmbeddingColumn(id, 0); }), HasSubstr("dimension of at least 1"));
  EXPECT_THAT(why([&] { EmbeddingColumn(id, 2, {.combiner = "max"}); }), HasSubstr("got \"max\""));
  EXPECT_THAT(why([&] { IndicatorColumn(nullptr); }), HasSubstr("got null"));
}

}  // namespace
}  // namespace cohort::feature_column
