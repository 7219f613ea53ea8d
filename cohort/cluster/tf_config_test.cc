#include "cohort/cluster/tf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGood[] = R"({"cluster": {"ps": ["h0:2222"], "worker": ["h1:2222", "h2:2222"]},
                             "task": {"type": "worker", "index": 1}})";

// With ' for ", so that the cases stay readable.
std::string Json(std::string text) {
  for (char& c : text) {
    if (c == '\'') c = '"';
  }
  return text;
}

std::string MessageFor(const std::string& json) {
  try {
    ParseTFConfig(json);
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), StartsWith("[TF_CONFIG] "));
    return e.what();
  }
  ADD_FAILURE() << "accepted: " << json;
  return "";
}

TEST(ParseTFConfigTest, ReadsClusterAndTask) {
  const TFConfig config = ParseTFConfig(kGood);
  EXPECT_EQ(config.cluster, ClusterSpec({{"ps", {"h0:2222"}}, {"worker", {"h1:2222", "h2:2222"}}}));
  EXPECT_EQ(config.task_type, "worker");
  EXPECT_EQ(config.task_index, 1);
  EXPECT_EQ(config.rpc_layer, std::nullopt);
}

TEST(ParseTFConfigTest, NothingIsAProgramOnItsOwn) {
  for (const char* text : {"", " \n", "{}", R"({"cluster": {}})", R"({"cluster": {}, "task": {}})"}) {
    const TFConfig config = ParseTFConfig(text);
    EXPECT_TRUE(config.cluster.empty()) << text;
    EXPECT_EQ(config.task_type, std::nullopt) << text;
    EXPECT_EQ(config.task_index, std::nullopt) << text;
  }
}

// The text may come from a peer. A recursive printer of the value would use up the stack.
TEST(ParseTFConfigTest, ListsInListsAreBounded) {
  const std::string nested = std::string(500'000, '[') + std::string(500'000, ']');
  EXPECT_THAT(MessageFor("{\"cluster\": " + nested + "}"), HasSubstr("at most 32 lists and objects"));
}

TEST(ParseTFConfigTest, ANumberThatNoDoubleHoldsIsNamed) {
  EXPECT_THAT(MessageFor("{\"task\": {\"index\": 300e66866613}}"), HasSubstr("300e66866613"));
}

TEST(ParseTFConfigTest, OtherForms) {
  const TFConfig config =
      ParseTFConfig(Json("{'cluster': {'worker': {'1': 'h1:1', '3': 'h3:1'}, 'trainer2': ['t:0', 't:0']}, "
                         "'task': {'type': 'worker', "
                         "'index': '3'}, 'rpc_layer': 'grpc', 'session_master': 'm', 'eval_session_master': "
                         "'e', 'environment': 'cloud', "
                         "'service': {'x': 1}, 'job': [1]}"));
  EXPECT_THAT(config.cluster.task_indices("worker"), ::testing::ElementsAre(1, 3));
  EXPECT_EQ(config.cluster.num_tasks("trainer2"), 2);
  EXPECT_EQ(config.task_index, 3);
  EXPECT_EQ(config.rpc_layer, "grpc");
  EXPECT_EQ(config.session_master, "m");
  EXPECT_EQ(config.eval_session_master, "e");
  EXPECT_EQ(config.environment, "cloud");
}

TEST(ParseTFConfigTest, AnEvaluatorStandsBesideTheCluster) {
  const TFConfig config =
      ParseTFConfig(Json("{'cluster': {'chief': ['h:1']}, 'task': {'type': 'evaluator', 'index': 0}}"));
  EXPECT_EQ(config.task_type, "evaluator");
}

TEST(ParseTFConfigTest, FieldErrors) {
  for (const auto& [json, part] : std::vector<std::pair<std::string, std::string>>{
           {"[1]", "expected an object as the whole; got a list: [1]"},
           {"{'cluster': ['h:1']}", "expected an object of jobs as cluster; got a list: ['h:1']"},
           {"{'cluster': null}", "got null"},
           {"{'cluster': {'ps': 'h:1'}}", "as cluster.ps; got a string: 'h:1'; write ['h:1']"},
           {"{'cluster': {'ps': 3}}", "expected a list of addresses as cluster.ps; got a number: 3"},
           {"{'cluster': {'ps': ['h:1', 2222]}}", "as cluster.ps[1]; got a number: 2222"},
           {"{'cluster': {'ps': ['h:1', 'h2']}}", "got 'h2': the port is missing; in /job:ps/task:1"},
           {"{'cluster': {'ps': {'a': 'h:1'}}}", "as keys of cluster.ps; got 'a'"},
           {"{'cluster': {'ps': {'-1': 'h:1'}}}", "got '-1'"},
           {"{'cluster': {'ps': {'01': 'h:1', '1': 'h:2'}}}", "got 1 twice"},
           {"{'cluster': {'ps': {'0': true}}}", "as cluster.ps.0; got a boolean: true"},
           {"{'cluster': {'p-s': ['h:1']}}", "letter followed by"},
           {"{'cluster': {'ps': ['h:1'], 'worker': ['H:1']}}",
            "got 'H:1' for both /job:ps/task:0 and /job:worker/task:0"},
           {"{'cluster': {'ps': ['h:1'], 'ps': ['h:2']}}", "each key once in an object; got 'ps' twice"},
           {"{'task': 'worker'}", "as task; got a string: 'worker'"},
           {"{'task': {'type': 0}}", "expected a job name as task.type; got a number: 0"},
           {"{'task': {'index': 1.5}}", "expected a whole number as task.index; got a number: 1.5"},
           {"{'task': {'index': 'one'}}", "got a string: 'one'"},
           {"{'task': {'index': '1 '}}", "got a string: '1 '"},
           {"{'task': {'index': true}}", "got a boolean: true"},
           {"{'task': {'index': -1}}", "as task.index; got -1"},
           {"{'task': {'index': 18446744073709551615}}", "got a number: 18446744073709551615"},
           {"{'task': {'index': -9223372036854775808}}", "got -9223372036854775808"},
           {"{'rpc_layer': 1}", "expected a string as rpc_layer; got a number: 1"},
           {"{'cluster': {'ps': ['h:1']}, 'task': {'index': 0}}", "expected task.type beside task.index 0"},
           {"{'cluster': {'ps': ['h:1'], 'worker': ['h:2']}, 'task': {'type': 'chief', 'index': 0}}",
            "expected a job of the cluster (ps, worker) as task.type; got 'chief'"},
           {"{'cluster': {'worker': ['h:1', 'h:2']}, 'task': {'type': 'worker', 'index': 2}}",
            "s 2 tasks (0, 1); got 2"}}) {
    EXPECT_THAT(MessageFor(Json(json)), HasSubstr(Json(part))) << json;
  }
}

TEST(ParseTFConfigTest, MisspeltKeysAreNoticed) {
  EXPECT_THAT(MessageFor(Json("{'cluster': {'ps_hosts': ['h:1']}}")),
              HasSubstr(R"([TF_CONFIG] cluster has a job "ps_hosts"; did you mean "ps"?)"));
  for (const auto& [job, meant] : std::vector<std::pair<std::string, std::string>>{{"workers", "worker"},
                                                                                   {"Worker", "worker"},
                                                                                   {"wroker", ""},
                                                                                   {"worke", "worker"},
                                                                                   {"workerr", "worker"},
                                                                                   {"wurker", "worker"},
                                                                                   {"PS", "ps"},
                                                                                   {"pss", "ps"},
                                                                                   {"chief_hosts", "chief"},
                                                                                   {"evaluators", "evaluator"},
                                                                                   {"worker2", ""},
                                                                                   {"client", ""},
                                                                                   {"px", ""}}) {
    const std::string json = R"({"cluster": {")" + job + R"(": ["h:1"]}})";
    if (meant.empty()) {
      EXPECT_NO_THROW(ParseTFConfig(json)) << job;
    } else {
      EXPECT_THAT(MessageFor(json), HasSubstr("did you mean \"" + meant + "\"?")) << job;
    }
  }
  EXPECT_THAT(MessageFor(Json("{'clusters': {}}")), HasSubstr("has a key \"clusters\"; did you mean \"cluster\"?"));
  EXPECT_THAT(MessageFor(Json("{'Task': {}}")), HasSubstr("did you mean \"task\"?"));
  EXPECT_THAT(MessageFor(Json("{'task': {'types': 'ps'}}")), HasSubstr("task has a key \"types\""));
}

TEST(ParseTFConfigTest, SyntaxErrorsShowThePlace) {
  EXPECT_THAT(MessageFor("{\"cluster\":\n  {\"ps\": [\"h:1\",]},\n  \"task\": {}}"),
              HasSubstr("at line 2, column 17: unexpected ']'"));
  EXPECT_THAT(MessageFor("{\"cluster\":\n  {\"ps\": [\"h:1\",]},\n  \"task\": {}}"),
              HasSubstr("\n      {\"ps\": [\"h:1\",]},\n                    ^"));
  EXPECT_THAT(MessageFor("{\"cluster\": {"), HasSubstr("line 1, column 14: unexpected end of input"));
  EXPECT_THAT(MessageFor("{'cluster': {}}"), HasSubstr("column 2: "));
  EXPECT_THAT(MessageFor("{'cluster': {}}"), HasSubstr("double quotes"));
  EXPECT_THAT(MessageFor("{} x"), HasSubstr("column 4"));
  EXPECT_THAT(MessageFor("\"\xff\""), HasSubstr("UTF-8"));
}

TEST(ParseTFConfigTest, LongLinesAreCutAroundThePlace) {
  std::string json = "{\"cluster\": {\"ps\": [";
  for (int i = 0; i < 200; ++i) json += "\"host" + std::to_string(i) + ":2222\", ";
  const size_t place = json.size();
  json += "oops";
  for (int i = 0; i < 200; ++i) json += ", \"host" + std::to_string(i) + ":2222\"";
  const std::string message = MessageFor(json);
  EXPECT_THAT(message, HasSubstr("oops"));
  EXPECT_THAT(message, HasSubstr("column " + std::to_string(place + 1) + ":"));
  EXPECT_LT(message.size(), 500u);
}

TEST(ParseTFConfigTest, EveryCutOfAGoodTextIsAnError) {
  const std::string good = kGood;
  for (size_t size = 1; size < good.size(); ++size) {
    EXPECT_THROW(ParseTFConfig(good.substr(0, size)), InvalidArgumentError) << size;
  }
  EXPECT_THROW(ParseTFConfig(std::string(100000, '[')), InvalidArgumentError);
}

class ResolverTest : public ::testing::Test {
 protected:
  void SetUp() override { unsetenv("TF_CONFIG"); }
  void TearDown() override { unsetenv("TF_CONFIG"); }
};

TEST_F(ResolverTest, ReadsTheEnvironmentAnewOnEachAccess) {
  const TFConfigClusterResolver resolver;
  EXPECT_TRUE(resolver.cluster_spec().empty());
  EXPECT_EQ(resolver.task_type(), std::nullopt);
  EXPECT_EQ(resolver.task_id(), std::nullopt);
  EXPECT_EQ(resolver.master(), "");
  setenv("TF_CONFIG", kGood, 1);
  EXPECT_EQ(resolver.cluster_spec().num_tasks("worker"), 2);
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 1);
  EXPECT_EQ(resolver.master(), "h2:2222");
  setenv("TF_CONFIG", "{", 1);
  EXPECT_THROW(resolver.task_id(), InvalidArgumentError);
}

TEST_F(ResolverTest, GivenTextAndOptions) {
  setenv("TF_CONFIG", "{", 1);
  const TFConfigClusterResolver plain{std::string(kGood)};
  EXPECT_EQ(plain.task_id(), 1);
  const TFConfigClusterResolver resolver(kGood, {.task_type = "ps", .task_id = 0, .rpc_layer = "grpc"});
  EXPECT_EQ(resolver.task_type(), "ps");
  EXPECT_EQ(resolver.task_id(), 0);
  EXPECT_EQ(resolver.rpc_layer(), "grpc");
  EXPECT_EQ(resolver.master(), "grpc://h0:2222");
  EXPECT_EQ(resolver.master("worker", 0), "grpc://h1:2222");
  EXPECT_EQ(resolver.master("worker", 0, ""), "h1:2222");
  EXPECT_THROW(resolver.master("worker", 7), NotFoundError);
}

TEST_F(ResolverTest, Master) {
  const auto master = [](const char* json) { return TFConfigClusterResolver(Json(json)).master(); };
  EXPECT_EQ(master("{'session_master': 'grpc://m:1', 'cluster': {'ps': ['h:1', 'h:2']}}"), "grpc://m:1");
  EXPECT_EQ(master("{'cluster': {'worker': ['h:1']}, 'task': {'type': 'worker', 'index': 0}}"), "");
  EXPECT_EQ(master("{'cluster': {'worker': ['h:1', 'h:2']}, 'task': {'type': 'worker', 'index': 0}, "
                   "'rpc_layer': 'grpc'}"),
            "grpc://h:1");
  EXPECT_THROW(master("{'cluster': {'worker': ['h:1', 'h:2']}}"), InvalidArgumentError);
  EXPECT_THROW(master("{'cluster': {'worker': ['h:1', 'h:2']}, 'task': {'type': 'worker'}}"), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort
