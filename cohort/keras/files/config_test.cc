// ConfigValue: JSON both ways, errors that show the value, and limits.
#include "cohort/keras/files/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ConfigTest, JsonBothWays) {
  const char text[] = R"({"a": null, "b": [true, 1, -2.5, "x\"y\n"], "c": {"d": {}, "e": []}, "big": 1e+300})";
  const ConfigValue value = ConfigValue::FromJson(text);
  EXPECT_EQ(value.ToJson(), text);
  EXPECT_TRUE(value.At("a").is_null());
  EXPECT_TRUE(value.At("b").AsList()[0].AsBool());
  EXPECT_EQ(value.At("b").AsList()[1].AsDouble(), 1.0);
  EXPECT_EQ(value.At("b").AsList()[3].AsString(), "x\"y\n");
  EXPECT_EQ(ConfigValue(3.0).AsInt(), 3);
  EXPECT_EQ(ConfigValue(std::nan("")).ToJson(), "NaN");
  EXPECT_EQ(ConfigValue(0.001).ToJson(), "0.001");
  EXPECT_EQ(ConfigValue(std::optional<double>()).ToJson(), "null");
}

TEST(ConfigTest, ErrorsShowTheValue) {
  const ConfigValue value = ConfigValue::Object{{"a", 1}, {"b", "text"}};
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { value.At("c"); }), AllOf(HasSubstr("'c'"), HasSubstr("a, b")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { value.At("b").AsDouble(); }), HasSubstr("\"text\""));
  EXPECT_THROW(value.At("a").AsBool(), InvalidArgumentError);
  EXPECT_THROW(ConfigValue(2.5).AsInt(), InvalidArgumentError);
  EXPECT_THROW(ConfigValue::List{}.empty() ? ConfigValue(1).Set("x", 1) : void(), InvalidArgumentError);
  for (const char* bad : {"", "{", "[1,]", "nul", "{\"a\" 1}"}) {
    EXPECT_THROW(ConfigValue::FromJson(bad), InvalidArgumentError) << bad;
  }
}

TEST(ConfigTest, TheDepthAndTheNumberOfValuesAreBounded) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(ConfigValue::FromJson(nested(200)).ToJson(), nested(200));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ConfigValue::FromJson(nested(1'000'000)); }),
              HasSubstr("256 levels"));
  const auto object = [](size_t names) {
    std::string text = "{";
    for (size_t i = 0; i < names; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
    return text + "}";
  };
  EXPECT_EQ(ConfigValue::FromJson(object(1000)).AsObject().size(), 1000u);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ConfigValue::FromJson(object(2000)); }),
              HasSubstr("1024 names in an object"));
  std::string list = "[0";
  for (int i = 0; i < (1 << 20); ++i) list += ",0";
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ConfigValue::FromJson(list + "]"); }), HasSubstr("1048576 values"));
}

TEST(ConfigTest, ANumberThatIsTooLargeForAnIntegerIsNoOtherNumber) {
  EXPECT_EQ(ConfigValue::FromJson("9223372036854775807").AsInt(), INT64_MAX);
  EXPECT_EQ(ConfigValue::FromJson("9223372036854775808").AsDouble(), 0x1p63);
  EXPECT_THROW(ConfigValue::FromJson("9223372036854775808").AsInt(), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::keras
