#include "cohort/graph/op_def.h"

#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/graph.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

AttrDef Attr(const std::string& spec) { return OpDef("X").Attr(spec).attrs().at(0); }

TEST(AttrSpec, Types) {
  EXPECT_EQ(Attr("T: type").kind, AttrKind::kType);
  EXPECT_EQ(Attr("value: tensor").kind, AttrKind::kTensor);
  EXPECT_EQ(Attr("s: shape").kind, AttrKind::kShape);
  EXPECT_EQ(Attr("l: list(shape)").kind, AttrKind::kListShape);
  EXPECT_EQ(Attr("Tin: list(type) >= 0").kind, AttrKind::kListType);
  EXPECT_EQ(Attr("Tin: list(type) >= 0").minimum, 0);
  EXPECT_EQ(Attr("N:int>=1").minimum, 1);
  EXPECT_FALSE(Attr("N: int").default_value.has_value());
}

TEST(AttrSpec, Sets) {
  EXPECT_THAT(Attr("T: {bfloat16, half, float, double, complex64, int32}").allowed_types,
              ElementsAre(DType::kBfloat16, DType::kFloat32, DType::kFloat64, DType::kInt32));
  EXPECT_THAT(Attr("T: {float32, float64, DT_INT64, uint8, bool, string, resource}").allowed_types,
              ElementsAre(DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kUint8, DType::kBool, DType::kString,
                          DType::kResource));
  EXPECT_THAT(Attr("padding: {'SAME', \"VALID\"}").allowed_strings, ElementsAre("SAME", "VALID"));
  EXPECT_EQ(Attr("T: list({int32,int64})").kind, AttrKind::kListType);
}

TEST(AttrSpec, Defaults) {
  EXPECT_EQ(Attr("a: int = -3").default_value->ToString(), "-3");
  EXPECT_EQ(Attr("a: float = 1e-3").default_value->ToString(), "0.001");
  EXPECT_EQ(Attr("a: float = 1").default_value->ToString(), "1");
  EXPECT_EQ(Attr("a: bool = true").default_value->ToString(), "true");
  EXPECT_EQ(Attr("a: string = ''").default_value->ToString(), "''");
  EXPECT_EQ(Attr("T: type = DT_FLOAT").default_value->ToString(), "float32");
  EXPECT_EQ(Attr("T: {int32, int64} = DT_INT64").default_value->ToString(), "int64");
  EXPECT_EQ(Attr("a: list(int) = []").default_value->ToString(), "[]");
  EXPECT_EQ(Attr("a: list(int) >= 2 = [1, -2]").default_value->ToString(), "[1, -2]");
  EXPECT_EQ(Attr("a: list(string) = ['x', 'y']").default_value->ToString(), "['x', 'y']");
  EXPECT_EQ(Attr("a: list(bool) = [true,false]").default_value->ToString(), "[true, false]");
  EXPECT_EQ(Attr("a: list(type) = [DT_INT32]").default_value->ToString(), "[int32]");
  EXPECT_EQ(Attr("a: shape = [2,?]").default_value->ToString(), "[2,?]");
  EXPECT_EQ(Attr("a: tensor = uint8[255, 0]").default_value->get<Tensor>()->ToVector<uint8_t>(),
            (std::vector<uint8_t>{255, 0}));
  EXPECT_EQ(Attr("a: shape = []").default_value->ToString(), "[]");
  EXPECT_EQ(Attr("a: shape = { unknown_rank: true }").default_value->ToString(), "<unknown>");
}

TEST(AttrSpec, MalformedOnesNameOpAndSpec) {
  for (const char* spec : {"",
                           "T",
                           "T:",
                           "T: tipe",
                           "T: {",
                           "T: {}",
                           "T: {float",
                           "T: {float}}",
                           "T: {flota}",
                           "T: {half}",
                           "T: type >= 1",
                           "N: int >= x",
                           "N: int >= 1 = 0",
                           "a: int = x",
                           "a: int = 1 2",
                           "a: bool = yes",
                           "a: string = x",
                           "a: string = 'x",
                           "T: {int32} = DT_FLOAT",
                           "p: {'A','B'} = 'C'",
                           "v: tensor = 1",
                           "l: list",
                           "l: list(int",
                           "l: list(tensor)",
                           "a: list(int) >= 1 = []",
                           "1a: int",
                           "a: list(int) = [1"}) {
    const std::string message = MessageOf<InvalidArgumentError>([&] { OpDef("BadOp").Attr(spec); });
    EXPECT_THAT(message, AllOf(HasSubstr("BadOp"), HasSubstr(StrCat("'", spec, "'")))) << spec;
  }
}

TEST(ArgSpec, Forms) {
  OpRegistry registry;
  registry.Register(OpDef("X")
                        .Input("a: T")
                        .Input("b: N * T")
                        .Input("c: Tin")
                        .HostInput("d: int32")
                        .Input("e: N * float")
                        .Input("f: resource")
                        .Output("g: DT_DOUBLE")
                        .Attr("T: type")
                        .Attr("N: int")
                        .Attr("Tin: list(type)"));
  const OpDef& op = registry.Get("X");
  EXPECT_EQ(op.inputs()[0].type_attr, "T");
  EXPECT_EQ(op.inputs()[1].number_attr, "N");
  EXPECT_EQ(op.inputs()[1].type_attr, "T");
  EXPECT_EQ(op.inputs()[2].type_list_attr, "Tin");
  EXPECT_EQ(op.inputs()[2].type_attr, "");
  EXPECT_TRUE(op.inputs()[3].host_memory);
  EXPECT_EQ(op.inputs()[3].dtype, DType::kInt32);
  EXPECT_EQ(op.inputs()[4].number_attr, "N");
  EXPECT_EQ(op.inputs()[4].dtype, DType::kFloat32);
  EXPECT_EQ(op.inputs()[5].dtype, DType::kResource);
  EXPECT_EQ(op.outputs()[0].dtype, DType::kFloat64);
}

TEST(ArgSpec, MalformedOnesNameOpAndSpec) {
  for (const char* spec : {"", "x", "x:", ": T", "x: T y", "x: N *", "x: 3 * T", "x: half", "x: Ref(T)"}) {
    const std::string message = MessageOf<InvalidArgumentError>([&] { OpDef("BadOp").Input(spec); });
    EXPECT_THAT(message, AllOf(HasSubstr("BadOp"), HasSubstr(StrCat("'", spec, "'")))) << spec;
  }
}

TEST(OpRegistry, RefusesArgumentsWithoutTheirAttributes) {
  OpRegistry registry;
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { registry.Register(OpDef("X").Input("a: T")); }),
              AllOf(HasSubstr("op X"), HasSubstr("'a: T'"), HasSubstr("'T'")));
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] { registry.Register(OpDef("X").Input("a: N * float").Attr("N: type")); }),
      AllOf(HasSubstr("op X"), HasSubstr("'N'"), HasSubstr("int")));
  EXPECT_THROW(registry.Register(OpDef("X").Output("a: N * T").Attr("N: int").Attr("T: list(type)")),
               InvalidArgumentError);
  EXPECT_THROW(OpDef("X").Input("a: float").Input("a: float"), InvalidArgumentError);
  EXPECT_THROW(OpDef("X").Attr("T: type").Attr("T: int"), InvalidArgumentError);
  EXPECT_TRUE(registry.All().empty());
}

TEST(OpDef, TraitsAreKept) {
  const OpDef plain("X");
  EXPECT_FALSE(plain.is_elementwise() || plain.is_broadcasting() || plain.is_activation() || plain.reads_shape_only());
  EXPECT_FALSE(plain.has_data_dependent_shape() || plain.keeps_last_input() || plain.returns_kept_value());
  EXPECT_EQ(plain.activation_gradient(), std::nullopt);
  EXPECT_TRUE(OpDef("X").Elementwise().is_elementwise());
  EXPECT_TRUE(OpDef("X").Broadcasting().is_broadcasting());
  EXPECT_TRUE(OpDef("X").ReadsShapeOnly().reads_shape_only());
  EXPECT_TRUE(OpDef("X").DataDependentShape().has_data_dependent_shape());
  EXPECT_TRUE(OpDef("X").KeepsLastInput().keeps_last_input());
  EXPECT_TRUE(OpDef("X").ReturnsKeptValue().returns_kept_value());
}

TEST(OpDef, ActivationsAndTheirGradientsAreElementwise) {
  const OpDef activation = OpDef("X").Activation();
  EXPECT_TRUE(activation.is_activation() && activation.is_elementwise());
  const OpDef gradient = OpDef("XGrad").ActivationGradient(1);
  EXPECT_EQ(gradient.activation_gradient(), 1);
  EXPECT_TRUE(gradient.is_elementwise());
  EXPECT_FALSE(gradient.is_activation());
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { OpDef("XGrad").ActivationGradient(2); }),
              AllOf(HasSubstr("op XGrad"), HasSubstr("input 0 or 1; got input 2")));
}

TEST(OpRegistry, NamesTheClosestOps) {
  OpRegistry registry;
  for (const char* name : {"MatMul", "Mul", "Conv2D", "Softmax"}) registry.Register(OpDef(name));
  EXPECT_THAT(MessageOf<NotFoundError>([&] { registry.Get("Matmull"); }),
              AllOf(HasSubstr("'Matmull'"), HasSubstr("MatMul"), ::testing::Not(HasSubstr("Softmax"))));
  EXPECT_THAT(MessageOf<AlreadyExistsError>([&] { registry.Register(OpDef("Mul")); }), HasSubstr("'Mul'"));
  EXPECT_EQ(registry.Find("Add"), nullptr);
  EXPECT_EQ(registry.All().size(), 4u);
  EXPECT_EQ(registry.All()[0]->name(), "Conv2D");
}

TEST(OpRegistry, FingerprintSeesEverySignature) {
  const auto fingerprint = [](OpDef&& def) {
    OpRegistry registry;
    registry.Register(std::move(def));
    return registry.Fingerprint();
  };
  const auto base = [] { return OpDef("X").Input("a: T").Attr("T: {float, double}"); };
  const uint64_t expected = fingerprint(base());
  EXPECT_EQ(fingerprint(base().Doc("words do not matter")), expected);
  EXPECT_NE(fingerprint(base().Output("b: T")), expected);
  EXPECT_NE(fingerprint(base().Attr("n: int = 1")), expected);
  EXPECT_NE(fingerprint(base().Attr("n: int = 1")), fingerprint(base().Attr("n: int = 2")));
  EXPECT_NE(fingerprint(base().Stateful()), expected);
  EXPECT_NE(fingerprint(base().UpdatesVariable()), expected);
  EXPECT_NE(fingerprint(base().HostInput("h: int32")), fingerprint(base().Input("h: int32")));
}

TEST(OpDef, Signature) {
  OpRegistry registry;
  registry.Register(OpDef("Pack")
                        .Input("values: N * T")
                        .HostOutput("output: T")
                        .Attr("N: int >= 1")
                        .Attr("T: type")
                        .Attr("mode: {'a', 'b'} = 'a'")
                        .Stateful());
  EXPECT_EQ(registry.Get("Pack").Signature(),
            "Pack(values: N * T) -> (output: T (host)); N: int >= 1; T: type; mode: {'a', 'b'} = 'a'; stateful");
}

}  // namespace
}  // namespace cohort
