#include "cohort/proto/tensor_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/proto/graph.pb.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

proto::TensorProto Message(proto::DataType dtype, std::vector<int64_t> dims) {
  proto::TensorProto message;
  message.set_dtype(dtype);
  for (const int64_t dim : dims) message.mutable_tensor_shape()->add_dim()->set_size(dim);
  return message;
}

std::string Refusal(const proto::TensorProto& message) {
  return MessageOf<InvalidArgumentError>([&] { FromProto(message); });
}

template <typename T>
void ExpectSameAfterTrip(const Tensor& tensor) {
  proto::TensorProto message;
  ToProto(tensor, &message);
  proto::TensorProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(message.SerializeAsString()));
  const Tensor back = FromProto(parsed);
  EXPECT_EQ(back.dtype(), tensor.dtype());
  EXPECT_EQ(back.shape(), tensor.shape());
  EXPECT_EQ(back.ToVector<T>(), tensor.ToVector<T>());
}

template <typename T>
void ExpectTrips(const std::vector<T>& values) {
  SCOPED_TRACE(DTypeName(kDTypeOf<T>));
  ExpectSameAfterTrip<T>(Tensor::FromValues<T>(values, Shape{2, 3}));
  ExpectSameAfterTrip<T>(Tensor::Scalar<T>(values[1]));
  ExpectSameAfterTrip<T>(Tensor(kDTypeOf<T>, Shape{0, 4}));
}

TEST(TensorProtoTest, EveryDTypeTravels) {
  ExpectTrips<float>({1, -2.5f, 3, 0, 1e30f, -0.0f});
  ExpectTrips<double>({1, -2.5, 3, 0, 1e300, 5});
  ExpectTrips<int32_t>({1, -2, 3, 0, 1 << 30, 5});
  ExpectTrips<uint8_t>({1, 255, 3, 0, 128, 5});
  ExpectTrips<int64_t>({1, -2, 3, 0, int64_t{1} << 60, 5});
  ExpectTrips<bool>({true, true, false, false, true, false});
  ExpectTrips<std::string>({"a", "", std::string("\0x", 2), "long enough to leave the object", "\xff", "z"});
  ExpectTrips<bfloat16>({bfloat16(1.f), bfloat16(-2.f), bfloat16(3.f), bfloat16(0.f), bfloat16(1e30f), bfloat16(5.f)});
}

TEST(TensorProtoTest, ShortListRepeatsItsLastValueAndAnEmptyOneIsZeros) {
  proto::TensorProto message = Message(proto::DT_FLOAT, {4});
  EXPECT_EQ(FromProto(message).ToVector<float>(), (std::vector<float>{0, 0, 0, 0}));
  message.add_float_val(1);
  message.add_float_val(7);
  EXPECT_EQ(FromProto(message).ToVector<float>(), (std::vector<float>{1, 7, 7, 7}));

  proto::TensorProto half = Message(proto::DT_BFLOAT16, {2});
  half.add_half_val(0x3f80);
  EXPECT_EQ(FromProto(half).ToVector<bfloat16>(), (std::vector<bfloat16>{bfloat16(1.f), bfloat16(1.f)}));

  proto::TensorProto text = Message(proto::DT_STRING, {3});
  text.add_string_val("ab");
  EXPECT_EQ(FromProto(text).ToVector<std::string>(), (std::vector<std::string>{"ab", "ab", "ab"}));
}

TEST(TensorProtoTest, BoolContentIsNormalised) {
  proto::TensorProto message = Message(proto::DT_BOOL, {3});
  message.set_tensor_content(std::string("\x00\x01\xf0", 3));
  const Tensor tensor = FromProto(message);
  EXPECT_EQ(static_cast<const uint8_t*>(tensor.raw_data())[2], 1);
}

TEST(TensorProtoTest, BadSizesAreNamed) {
  proto::TensorProto content = Message(proto::DT_FLOAT, {2, 3});
  content.set_tensor_content("12345");
  EXPECT_THAT(Refusal(content), HasSubstr("float32[2,3] must have 24 bytes; got 5"));

  proto::TensorProto list = Message(proto::DT_INT64, {1});
  list.add_int64_val(1);
  list.add_int64_val(2);
  EXPECT_THAT(Refusal(list), HasSubstr("at most 1 values; got 2"));

  EXPECT_THAT(Refusal(Message(proto::DT_COMPLEX64, {1})), HasSubstr("dtype number 8"));
  EXPECT_THAT(Refusal(Message(proto::DT_FLOAT, {-1})), HasSubstr("fully defined; got [?]"));
  EXPECT_THAT(Refusal(Message(proto::DT_FLOAT, {int64_t{1} << 40, int64_t{1} << 40})), HasSubstr("elements"));
  EXPECT_THAT(Refusal(Message(proto::DT_FLOAT, {int64_t{1} << 40, 0, int64_t{1} << 40})), HasSubstr("elements"));
  EXPECT_THAT(Refusal(Message(proto::DT_FLOAT, {1, 1, 1, 1, 1, 1, 1, 1, 1})), HasSubstr("8 dimensions"));
  EXPECT_THROW(FromProto(Message(proto::DT_FLOAT, {-5})), InvalidArgumentError);
  proto::TensorProto message;
  EXPECT_THROW(ToProto(Tensor(), &message), InvalidArgumentError);
}

TEST(TensorProtoTest, ShapesTravelWithUnknowns) {
  for (const Shape& shape : {Shape(), Shape{3, -1}, Shape::UnknownRank(), Shape{0}}) {
    proto::TensorShapeProto message;
    ToProto(shape, &message);
    const Shape back = FromProto(message);
    EXPECT_EQ(back.ToString(), shape.ToString());
  }
}

// The bytes that TensorFlow writes for tf.constant(0.5): numbers of fields are part of the contract.
TEST(TensorProtoTest, WireNumbersAreTensorFlows) {
  proto::AttrValue attr;
  ToProto(Tensor::Scalar(0.5f), attr.mutable_tensor());
  EXPECT_EQ(attr.SerializeAsString(), std::string("\x42\x0a\x08\x01\x12\x00\x2a\x04\x00\x00\x00\x3f", 12));
}

// One value stands for all elements.
TEST(TensorProtoTest, ASmallMessageGivesNoHugeTensor) {
  EXPECT_EQ(FromProto(Message(proto::DT_UINT8, {1 << 20})).num_elements(), 1 << 20);
  EXPECT_THAT(Refusal(Message(proto::DT_FLOAT, {1 << 30})), HasSubstr("float32[1073741824] of 4294967296 bytes"));
  EXPECT_THAT(Refusal(Message(proto::DT_STRING, {1 << 26})), HasSubstr("string[67108864]"));
  TensorBudget budget;
  const proto::TensorProto half = Message(proto::DT_UINT8, {150 << 20});
  FromProto(half, budget);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { FromProto(half, budget); }), HasSubstr("157286400 bytes"));
  // Bytes that are there are free.
  proto::TensorProto whole = Message(proto::DT_UINT8, {64 << 20});
  whole.set_tensor_content(std::string(64 << 20, 'x'));
  for (int i = 0; i < 5; ++i) FromProto(whole, budget);
}

}  // namespace
}  // namespace cohort
