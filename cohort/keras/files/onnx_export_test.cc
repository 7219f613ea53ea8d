// The ONNX files that models become; tests/interop has onnxruntime predict with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>

#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/layers/image_layers.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/layers/preprocessing/preprocessing_layers.h"
#include "cohort/keras/layers/recommender_layers.h"
#include "cohort/keras/layers/sequence_layers.h"
#include "cohort/keras/testing/array_ops_layer.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/ops/array.h"
#include "cohort/ops/reduction.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class OnnxExportTest : public ::testing::Test {
 protected:
  onnx::ModelProto Exported(Model& model) const {
    const testing::TempFolder folder;
    const std::string path = folder / "model.onnx";
    model.ExportOnnx(path);
    onnx::ModelProto proto;
    EXPECT_TRUE(proto.ParseFromString(ReadFile(path)));
    return proto;
  }
  static std::vector<std::string> Ops(const onnx::ModelProto& model) {
    std::vector<std::string> ops;
    for (const onnx::NodeProto& node : model.graph().node()) ops.push_back(node.op_type());
    return ops;
  }
  static std::vector<int64_t> Ints(const onnx::NodeProto& node, const std::string& name) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == name) return {attribute.ints().begin(), attribute.ints().end()};
    }
    return {};
  }
  static onnx::TensorProto Weight(const onnx::ModelProto& model, const std::string& name) {
    for (const onnx::TensorProto& tensor : model.graph().initializer()) {
      if (tensor.name() == name) return tensor;
    }
    ADD_FAILURE() << "no initializer " << name;
    return {};
  }
};

TEST_F(OnnxExportTest, ImagesAreTurnedOnceWhereTheyEnter) {
  Sequential model({Input(Shape{12, 12, 2}, {.name = "image"}),
                    Conv2D(4, 3, {.strides = 2, .padding = "same", .activation = "relu"}), BatchNormalization(),
                    MaxPooling2D(2), SeparableConv2D(6, 2, {.activation = "relu6"}), AveragePooling2D({1, 2}),
                    GlobalAveragePooling2D(), Dense(3, {.activation = "softmax", .name = "classes"})});
  const onnx::ModelProto proto = Exported(model);
  EXPECT_THAT(Ops(proto), ElementsAre("Transpose", "Conv", "Relu", "BatchNormalization", "MaxPool", "Conv", "Conv",
                                      "Clip", "AveragePool", "ReduceMean", "MatMul", "Add", "Softmax", "Identity"));
  EXPECT_EQ(proto.opset_import(0).version(), 17);
  EXPECT_EQ(proto.graph().input(0).name(), "image");
  EXPECT_EQ(proto.graph().output(0).name(), "classes");
  const onnx::TensorShapeProto& shape = proto.graph().input(0).type().tensor_type().shape();
  EXPECT_EQ(shape.dim(0).dim_param(), "batch");
  EXPECT_EQ(shape.dim(3).dim_value(), 2);
  const onnx::NodeProto& conv = proto.graph().node(1);
  EXPECT_EQ(conv.input_size(), 3);  // the bias is part of it
  EXPECT_THAT(Ints(conv, "pads"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(Ints(conv, "strides"), ElementsAre(2, 2));
}

TEST_F(OnnxExportTest, ImagesAreTurnedBackForWhoNeedsOurOrder) {
  Sequential model({Input(Shape{4, 4, 2}), Conv2D(2, 2), Flatten(), Dense(1)});
  EXPECT_THAT(Ops(Exported(model)),
              ElementsAre("Transpose", "Conv", "Transpose", "Reshape", "MatMul", "Add", "Identity"));
  // Two branches share one turn.
  const LayerTensor x = Input(Shape{4, 4, 2});
  const LayerTensor a = Conv2D(2, 2)(x), b = Conv2D(2, 2)(x);
  Model branches({x}, {Concatenate()({Add()({a, b}), a})});
  const std::vector<std::string> ops = Ops(Exported(branches));
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Transpose"), 2);
}

TEST_F(OnnxExportTest, TransposedConvolutions) {
  Sequential model({Input(Shape{3, 4, 2}), Conv2DTranspose(4, 3, {.strides = 2, .padding = "same", .name = "same"}),
                    Conv2DTranspose(2, {2, 3}, {.strides = {3, 2}, .output_padding = RowsColumns(2, 0)})});
  const onnx::ModelProto proto = Exported(model);
  EXPECT_THAT(Ops(proto), ElementsAre("Transpose", "ConvTranspose", "ConvTranspose", "Transpose", "Identity"));
  const onnx::NodeProto &same = proto.graph().node(1), &valid = proto.graph().node(2);
  EXPECT_EQ(same.input_size(), 3);  // the bias is part of it
  EXPECT_THAT(Ints(same, "pads"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(Ints(same, "output_padding"), ElementsAre(0, 0));
  EXPECT_THAT(Ints(valid, "pads"), ElementsAre());
  EXPECT_THAT(Ints(valid, "output_padding"), ElementsAre(2, 0));
  const onnx::TensorProto kernel = Weight(proto, "same/kernel/onnx");
  EXPECT_THAT(std::vector<int64_t>(kernel.dims().begin(), kernel.dims().end()), ElementsAre(2, 4, 3, 3));
}

TEST_F(OnnxExportTest, SequencesAreImagesOfOneRow) {
  Sequential model({Input(Shape{8, 2}), Conv1D(4, 3, {.activation = "relu", .name = "c"}), GlobalMaxPooling1D()});
  const onnx::ModelProto proto = Exported(model);
  EXPECT_THAT(Ops(proto),
              ElementsAre("Unsqueeze", "Transpose", "Conv", "Relu", "Transpose", "Squeeze", "ReduceMax", "Identity"));
  const onnx::TensorProto kernel = Weight(proto, "c/kernel/shaped/onnx");
  EXPECT_THAT(std::vector<int64_t>(kernel.dims().begin(), kernel.dims().end()), ElementsAre(4, 2, 1, 3));
}

TEST_F(OnnxExportTest, KernelsAreTurned) {
  Sequential model({Input(Shape{3, 3, 2}), Conv2D(3, {1, 2}, {.use_bias = false, .name = "c"}),
                    DepthwiseConv2D({2, 1}, {.depth_multiplier = 2, .name = "d"})});
  model.SetWeights({Counting(Shape{1, 2, 2, 3}), Counting(Shape{2, 1, 3, 2}), Counting(Shape{6})});
  const onnx::ModelProto proto = Exported(model);
  const onnx::TensorProto c = Weight(proto, "c/kernel/onnx"), d = Weight(proto, "d/kernel/onnx");
  EXPECT_THAT(std::vector<int64_t>(c.dims().begin(), c.dims().end()), ElementsAre(3, 2, 1, 2));
  EXPECT_THAT(std::vector<int64_t>(d.dims().begin(), d.dims().end()), ElementsAre(6, 1, 2, 1));
  const auto* values = reinterpret_cast<const float*>(c.raw_data().data());
  EXPECT_EQ(values[0], 0);  // output 0, input 0, column 0; then column 1
  EXPECT_EQ(values[1], 6);
  EXPECT_EQ(values[2], 3);  // input 1
  const auto* depthwise = reinterpret_cast<const float*>(d.raw_data().data());
  EXPECT_EQ(depthwise[0], 0);  // channel 0, multiplier 0, row 0; then row 1
  EXPECT_EQ(depthwise[1], 6);
  EXPECT_EQ(depthwise[2], 1);  // multiplier 1
}

TEST_F(OnnxExportTest, OpsThatMoveValues) {
  Sequential model({Input(Shape{4, 6}), MakeLayer<ArrayOps>(), Dense(2)});
  const onnx::ModelProto proto = Exported(model);
  EXPECT_THAT(
      Ops(proto),
      IsSupersetOf({"Transpose", "MatMul", "Split",          "Slice", "Unsqueeze",   "Squeeze", "Concat", "Gather",
                    "GatherND",  "Where",  "GreaterOrEqual", "Less",  "LessOrEqual", "Greater", "Equal",  "Not",
                    "And",       "Or",     "Expand",         "Tile",  "Pad",         "Shape",   "Resize"}));
  for (const onnx::NodeProto& node : proto.graph().node()) {
    if (node.op_type() == "Split" && node.input_size() == 1) {
      EXPECT_EQ(node.output_size(), 3);
    }
  }
  EXPECT_EQ(proto.graph().output(0).type().tensor_type().shape().dim(1).dim_value(), 2);
}

// A convolution's kernel is there in ONNX's order alone; what was folded into attributes is not there at all.
TEST_F(OnnxExportTest, HoldsNoConstantThatNothingReads) {
  Sequential images({Input(Shape{8, 8, 2}), Conv2D(4, 3, {.activation = "relu6"}), SeparableConv2D(3, 2),
                     BatchNormalization(), GlobalAveragePooling2D(), Dense(2)});
  Sequential arrays({Input(Shape{4, 6}), MakeLayer<ArrayOps>()});
  Sequential lookups({Input(Shape{6}, {.dtype = DType::kInt32}), Embedding(12, 4), Flatten(), Dense(2)});
  Sequential steps({Input(Shape{6, 4}), Conv1D(4, 2), GroupNormalization(2), Conv1DTranspose(2, 3), Flatten()});
  for (Model* model : std::vector<Model*>{&images, &arrays, &lookups, &steps}) {
    const onnx::ModelProto proto = Exported(*model);
    std::set<std::string> read;
    for (const onnx::NodeProto& node : proto.graph().node()) read.insert(node.input().begin(), node.input().end());
    EXPECT_GT(proto.graph().initializer_size(), 0);
    for (const onnx::TensorProto& tensor : proto.graph().initializer()) {
      EXPECT_EQ(read.count(tensor.name()), 1) << tensor.name();
    }
  }
}

TEST_F(OnnxExportTest, WhatHasNoFormIsNamed) {
  class Largest final : public Layer {
   public:
    Largest() : Layer("Largest") {}
    std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
      return {ops::Cast(ops::ArgMax(inputs[0], -1), DType::kFloat32)};
    }
  };
  Sequential model({Input(Shape{3}), MakeLayer<Largest>()});
  EXPECT_THAT(MessageOf<UnimplementedError>([&] { Exported(model); }), AllOf(HasSubstr("ArgMax"), HasSubstr("ONNX")));
  Sequential open({Dense(1)});
  EXPECT_THROW(Exported(open), FailedPreconditionError);
  Sequential words({Input(Shape{2}, {.dtype = DType::kString, .name = "city"}), Hashing(9), Embedding(9, 2)});
  EXPECT_THAT(MessageOf<UnimplementedError>([&] { Exported(words); }),
              AllOf(HasSubstr("strings for input 'city'"), HasSubstr("SavedModel")));
}

TEST_F(OnnxExportTest, SumsAndMeansOfRowsOfATable) {
  for (const char* combiner : {"sum", "mean", "sqrtn"}) {
    for (const bool pads : {false, true}) {
      EmbedReduceOptions options{.combiner = combiner};
      if (pads) options.padding_idx = 0;
      Sequential model({Input(Shape{3}, {.dtype = DType::kInt64}), EmbedReduce(10, 4, options)});
      EXPECT_THAT(Ops(Exported(model)), Contains("Gather")) << combiner;
    }
  }
}

TEST_F(OnnxExportTest, LayerNormalizationIsOneNode) {
  Sequential model({Input(Shape{5, 3}), LayerNormalization({.epsilon = 0.25, .center = false})});
  const onnx::ModelProto proto = Exported(model);
  EXPECT_THAT(Ops(proto), ElementsAre("LayerNormalization", "Identity"));
  const onnx::NodeProto& node = proto.graph().node(0);
  EXPECT_EQ(node.input_size(), 3);
  ASSERT_EQ(node.attribute_size(), 2);
  EXPECT_EQ(node.attribute(0).i(), -1);
  EXPECT_EQ(node.attribute(1).name(), "epsilon");
  EXPECT_EQ(node.attribute(1).f(), 0.25f);
}

TEST_F(OnnxExportTest, MixedPrecisionIsExportedAsFloats) {
  Sequential model({Input(Shape{3}), Dense(2), LayerNormalization()}, {.dtype_policy = "mixed_bfloat16"});
  const onnx::ModelProto proto = Exported(model);
  for (const onnx::TensorProto& tensor : proto.graph().initializer()) {
    EXPECT_NE(tensor.data_type(), onnx::TensorProto::BFLOAT16) << tensor.name();
  }
  EXPECT_EQ(proto.graph().output(0).type().tensor_type().elem_type(), onnx::TensorProto::FLOAT);
}

}  // namespace
}  // namespace cohort::keras
