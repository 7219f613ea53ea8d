#include "cohort/graph/node_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph.h"
#include "cohort/graph/testing/test_ops.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CallSite SiteOf(const NodeName& name = "") { return name.site(); }

TEST(NodeNameTest, KnowsTheLineOfTheCallWithAndWithoutAName) {
  EXPECT_EQ(SiteOf().line, __LINE__);
  EXPECT_EQ(SiteOf("a").line, __LINE__);
  EXPECT_EQ(SiteOf(std::string("a")).line, __LINE__);
  EXPECT_STREQ(SiteOf().file, "cohort/graph/node_name_test.cc");  // in every checkout
  EXPECT_EQ(NodeName("a").text(), "a");
  EXPECT_EQ(NodeName("a", CallSite{"x.cc", 7}).site().line, 7);
}

TEST(CallSiteTest, ShowsTheLastTwoPartsOfThePath) {
  EXPECT_EQ((CallSite{"/somewhere/src/train.cc", 57}).ToString(), "src/train.cc:57");
  EXPECT_EQ((CallSite{"src/train.cc", 57}).ToString(), "src/train.cc:57");
  EXPECT_EQ((CallSite{"train.cc", 57}).ToString(), "train.cc:57");
  EXPECT_EQ((CallSite{"/train.cc", 57}).ToString(), "train.cc:57");
  EXPECT_EQ(CallSite().ToString(), "");
}

TEST(CallSiteTest, LinesOfCohortItselfAreNoneOfAProgram) {
  EXPECT_TRUE(CallSite::Here().IsOfProgram());  // of a test
  EXPECT_TRUE((CallSite{"/somewhere/src/train.cc", 1}).IsOfProgram());
  EXPECT_FALSE((CallSite{"cohort/ops/array.cc", 1}).IsOfProgram());
  EXPECT_FALSE((CallSite{"/usr/include/c++/12/bits/stl_construct.h", 97}).IsOfProgram());
  EXPECT_FALSE(CallSite().IsOfProgram());
}

TEST(CallSiteTest, ANodeKeepsTheLineThatAddedIt) {
  Graph graph;
  const Node* plain = graph.Op("TestInput").Attr("dtype", DType::kFloat32).Attr("shape", Shape{2}).Finish();
  EXPECT_EQ(plain->site().line, __LINE__ - 1);
  EXPECT_THAT(plain->Describe(), HasSubstr(StrCat(", made at graph/node_name_test.cc:", __LINE__ - 2)));
  // The line that wrote the name counts more than the one that began the node.
  const NodeName name = "named";
  const Node* named = graph.Op("TestInput").Name(name).Attr("dtype", DType::kFloat32).Attr("shape", Shape{2}).Finish();
  EXPECT_EQ(named->site().line, __LINE__ - 2);
}

TEST(CallSiteTest, AScopeGivesALineToNodesThatHaveNone) {
  Graph graph;
  const auto add = [&graph](CallSite site) {
    return graph.Op("TestInput", site).Attr("dtype", DType::kFloat32).Attr("shape", Shape{2}).Finish();
  };
  EXPECT_EQ(add({})->site().file, nullptr);
  EXPECT_THAT(add({})->Describe(), Not(HasSubstr("made at")));
  {
    const CallSiteScope outer(graph, CallSite{"a.cc", 1});
    EXPECT_EQ(add({})->site().ToString(), "a.cc:1");
    EXPECT_EQ(add({"b.cc", 2})->site().ToString(), "b.cc:2");
    const CallSiteScope inner(graph, CallSite{"c.cc", 3});
    EXPECT_EQ(add({})->site().ToString(), "c.cc:3");
    const CallSiteScope unknown(graph, CallSite());
    EXPECT_EQ(add({})->site().ToString(), "c.cc:3");
  }
  EXPECT_EQ(add({})->site().file, nullptr);
}

TEST(CallSiteTest, AnErrorWhileANodeIsAddedNamesTheLine) {
  Graph graph;
  const Output x = TestInput(graph, DType::kFloat32, Shape{2});
  const Output y = TestInput(graph, DType::kInt32, Shape{2});
  try {
    graph.Op("TestMul").Input(x).Input(y).Finish();
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr(StrCat("made at graph/node_name_test.cc:", __LINE__ - 3)));
  }
}

}  // namespace
}  // namespace cohort
