"""Tests that each check finds its problems, and reports nothing that is right."""

import unittest

import activation_names
import backend_doors
import code_sizes
import cpp_outline
import cpp_tokens
import cuda_dialect
import document_paths
import exports
import format_versions
import include_order
import listed_sources
import op_names
import public_headers
import scripts
import sizes
import words
from tree import Tree


class IncludeOrderTest(unittest.TestCase):
    def problems(self, path, include, **arguments):
        tree = Tree({path: f'#pragma once\n#include "cohort/{include}"\n'})
        return include_order.check(tree, arguments.get("exceptions", {}))

    def test_one_way(self):
        self.assertEqual(self.problems("cohort/graph/a.h", "core/tensor.h"), [])
        self.assertEqual(self.problems("cohort/graph/a.h", "graph/b.h"), [])
        self.assertIn("cohort/graph/a.h:2", self.problems("cohort/graph/a.h", "ops/math.h")[0])
        self.assertEqual(len(self.problems("cohort/graph/sub/a.cc", "keras/model.h")), 1)

    def test_proto_stays_inside(self):
        self.assertEqual(len(self.problems("cohort/graph/a.h", "proto/graph.pb.h")), 1)
        self.assertEqual(self.problems("cohort/graph/a.cc", "proto/graph.pb.h"), [])
        self.assertEqual(self.problems("cohort/graph/a_internal.h", "proto/graph.pb.h"), [])

    def test_unknown_module_and_umbrella(self):
        self.assertEqual(len(self.problems("cohort/misc/a.cc", "core/tensor.h")), 1)
        self.assertEqual(len(self.problems("cohort/graph/a.cc", "misc/a.h")), 1)
        self.assertEqual(len(self.problems("cohort/graph/a.cc", "cohort.h")), 1)

    def test_tests_and_programs_may_include_all(self):
        self.assertEqual(self.problems("cohort/ops/a_test.cc", "runtime/session.h"), [])
        self.assertEqual(self.problems("examples/a.cc", "keras/model.h"), [])
        self.assertEqual(self.problems("cohort/register_all.cc", "keras/model.h"), [])

    def test_exceptions(self):
        allowed = {("cohort/graph/a.cc", "ops/math.h"): "a reason"}
        self.assertEqual(self.problems("cohort/graph/a.cc", "ops/math.h", exceptions=allowed), [])
        self.assertIn("not needed", self.problems("cohort/graph/a.cc", "core/tensor.h", exceptions=allowed)[0])


class CudaDialectTest(unittest.TestCase):
    KERNEL = "cohort/backends/cuda/kernels/a.cu"
    SHARED = "cohort/backends/cuda/kernels/shared.h"

    def problems(self, line, path=KERNEL):
        texts = {self.KERNEL: f'#include "{cuda_dialect.DIALECT}"\n#include "{self.SHARED}"\n', self.SHARED: "#pragma once\n",
                 "cohort/backends/cuda/driver_of_card.cc": "#include <cuda_runtime_api.h>\n",
                 cuda_dialect.DIALECT: "#ifdef __CUDACC__\n__global__ void Run();\n#endif\n"}
        texts[path] += line + "\n"
        return cuda_dialect.check(Tree(texts))

    def test_the_dialect_and_files_of_the_host_may_use_cuda(self):
        self.assertEqual(self.problems("// like atomicAdd, but <<< in order"), [])
        self.assertEqual(self.problems('const char* const kText = "asm";'), [])
        self.assertEqual(self.problems('#include <cmath>'), [])

    def test_each_word_is_found_with_its_place(self):
        for line in ['asm volatile("bar.sync 0;");', "v = __shfl_xor_sync(m, v, 1);", "__syncthreads();", "atomicAdd(sum, x);",
                     "int i = threadIdx.x;", "__shared__ float s[32];", "#ifdef __CUDA_ARCH__", "v = __ldg(p);", "float4 pack;",
                     "cub::BlockReduce<float, 32> r;", "Run<<<1, 2>>>(k);", "#include <cub/cub.cuh>", "#include <cuda_bf16.h>",
                     "#include <cooperative_groups.h>", "#include <cuda/std/array>"]:
            problems = self.problems(line)
            self.assertEqual(len(problems), 1, line)
            self.assertIn(f"{self.KERNEL}:3: ", problems[0])

    def test_headers_of_kernels_are_read(self):
        self.assertIn(f"{self.SHARED}:2: ", self.problems("__syncwarp();", self.SHARED)[0])


class PublicHeadersTest(unittest.TestCase):
    def test_chain_is_named(self):
        tree = Tree({
            "cohort/cohort.h": '#pragma once\n#include "cohort/core/a_internal.h"\n',
            "cohort/core/a_internal.h": "#pragma once\n#include <dnnl.hpp>\n",
        })
        problems = public_headers.check(tree)
        self.assertEqual(len(problems), 2)
        self.assertIn("cohort/cohort.h > cohort/core/a_internal.h", problems[1])

    def test_each_library(self):
        for name in ["google/protobuf/message.h", "grpcpp/grpcpp.h", "dnnl.hpp", "spdlog/spdlog.h",
                     "nlohmann/json.hpp", "cohort/proto/graph.pb.h"]:
            tree = Tree({"cohort/cohort.h": f"#pragma once\n#include <{name}>\n"})
            self.assertEqual(len(public_headers.check(tree)), 1, name)

    def test_good_header(self):
        tree = Tree({"cohort/cohort.h": '#pragma once\n#include <vector>\n#include "cohort/core/b.h"\n',
                     "cohort/core/b.h": "#pragma once\n",
                     "cohort/core/c_internal.h": "#pragma once\n#include <dnnl.hpp>\n"})
        self.assertEqual(public_headers.check(tree), [])

    def test_layers_below_a_session(self):
        def problems(header):
            return public_headers.check(Tree({"cohort/cohort.h": '#pragma once\n#include "cohort/runtime/session.h"\n',
                                              "cohort/runtime/session.h": f'#pragma once\n#include "{header}"\n',
                                              header: "#pragma once\n"}))
        self.assertEqual(problems("cohort/device/device_attributes.h"), [])
        for header in ["cohort/device/device.h", "cohort/backends/cpu/a.h", "cohort/runtime/plan/plan.h"]:
            self.assertEqual(len(problems(header)), 1, header)
            self.assertIn(f"cohort/runtime/session.h > {header}", problems(header)[0])

    def test_missing_umbrella(self):
        self.assertEqual(len(public_headers.check(Tree({"cohort/core/b.h": "#pragma once\n"}))), 1)


class ExportsTest(unittest.TestCase):
    HEADER = """#pragma once

#include <string>

namespace a {
class Later;
class [[nodiscard]] A : public B {
 public:
  void M();
  friend bool operator==(const A& a, const A& b);
  friend bool operator<(const A&, const A&) = default;
};
struct CAPABILITY { int x = 1; };
template <>
struct Trait<int> {};
template <typename T>
class Held {};
[[noreturn]] void Fail(
    int code);
inline int Seen() { return 1; }
constexpr int kOne = 1;
extern const int kTwo;
template <typename T>
T Twice(T x);
Output operator+(Output a, Output b);
using Fn = void (*)(int);
}  // namespace a
"""

    def check(self, text, **others):
        tree = Tree({"cohort/cohort.h": '#include "cohort/core/a.h"\n', "cohort/core/a.h": text, **others})
        return exports.check(tree)

    def test_what_is_marked(self):
        text = exports.marked(self.HEADER)
        for line in ["class [[nodiscard]] COHORT_EXPORT A : public B {", "struct COHORT_EXPORT CAPABILITY { int x = 1; };",
                     "class COHORT_EXPORT Held {};", "[[noreturn]] COHORT_EXPORT void Fail(",
                     "COHORT_EXPORT extern const int kTwo;", "COHORT_EXPORT Output operator+(Output a, Output b);",
                     '#include "cohort/core/export.h"']:
            self.assertIn(line + "\n", text)
        self.assertEqual(text.count("COHORT_EXPORT"), 6)
        self.assertEqual(exports.marked(text), text)

    def test_problems_are_where_a_mark_lacks(self):
        lines = {problem.split(":")[1] for problem in self.check(self.HEADER)}
        self.assertEqual(lines, {"7", "10", "13", "17", "18", "22", "25"})

    def test_a_friend_is_declared_again(self):
        text = exports.marked(self.HEADER)
        self.assertEqual(len(self.check(text)), 1)
        again = "};\nCOHORT_EXPORT bool operator==(const A& a, const A& b);\nstruct"
        self.assertEqual(self.check(text.replace("};\nstruct", again, 1)), [])

    def test_other_files_export_nothing(self):
        problems = self.check("#pragma once\n", **{"cohort/core/b.h": "class COHORT_EXPORT B {};\n"})
        self.assertEqual(len(problems), 1)
        self.assertIn("cohort/core/b.h", problems[0])


class OpNamesTest(unittest.TestCase):
    def problems(self, text, path="cohort/ops/a.h"):
        return op_names.check(Tree({path: text}))

    def test_the_last_parameter_is_the_name(self):
        # Without the macro: an inline function, or a header that programs do not see.
        for macro in ["COHORT_EXPORT ", ""]:
            self.assertEqual(self.problems(macro + 'Output Neg(Output x, const NodeName& name = "");\n'), [])
            pad = macro + 'Output Pad(Output x, const Masks& m = {},\n           const NodeName& name = "");\n'
            self.assertEqual(self.problems(pad), [])
            self.assertIn("cohort/ops/a.h:2: Neg", self.problems(f"\n{macro}Output Neg(Output x);\n")[0])
            self.assertEqual(len(self.problems(macro + "Node* Split(Output x, const Masks& m = {});\n")), 1)
            self.assertEqual(len(self.problems(macro + 'Output Neg(Output x, const NodeName& name = "", int n = 0);\n')), 1)

    def test_what_adds_no_node_of_its_own(self):
        for text in ["COHORT_EXPORT DType VariableDType(Output handle);\n", "inline Output operator-(Output x) { return x; }\n",
                     "COHORT_EXPORT Output OnesLike(Output x, const NodeName& name);\n"]:
            self.assertEqual(self.problems(text), [], text)
        self.assertEqual(self.problems("COHORT_EXPORT Output Neg(Output x);\n", "cohort/graph/a.h"), [])


class ListedSourcesTest(unittest.TestCase):
    def test_forgotten_test(self):
        tree = Tree({"cohort/core/CMakeLists.txt": "cohort_module(core TESTS a_test.cc # c_test.cc\n sub/d_test.cc)\n",
                     "cohort/core/a_test.cc": "", "cohort/core/b_test.cc": "", "cohort/core/c_test.cc": "",
                     "cohort/core/sub/d_test.cc": "", "cohort/core/e.cc": "", "examples/f.cc": ""})
        found = [problem.split(":")[0] for problem in listed_sources.check(tree)]
        self.assertEqual(found, ["cohort/core/b_test.cc", "cohort/core/c_test.cc", "cohort/core/e.cc"])


class DocumentPathsTest(unittest.TestCase):
    def problems(self, text):
        tree = Tree({"README.md": text, "docs/a.md": "", "cohort/core/tensor.h": "", "dev": "", "bench/a.py": ""})
        return document_paths.check(tree)

    def test_good(self):
        for text in ["`./dev test`", "`cohort/core/tensor.h`", "`core/`", "`core/tensor.h:12`", "`cohort/*/tensor.h`",
                     "`/job:ps/task:0`", "`application/json`", "`build/release/bin/`", "[a](docs/a.md#part)",
                     "[w](https://example.org/x)", "```\n./dev test\n```"]:
            self.assertEqual(self.problems(text), [], text)

    def test_bad(self):
        for text in ["`cohort/core/tensors.h`", "`tests/nothing/`", "`./devil`", "[a](docs/b.md)", "`bench/b.py`",
                     "`nowhere/b.cc`", "```\n./run test\n```"]:
            self.assertEqual(len(self.problems(text)), 1, text)


class ScriptsTest(unittest.TestCase):
    def test_syntax(self):
        tree = Tree({"a.sh": "if true; then\n", "b": "#!/usr/bin/env bash\n)\n", "c.py": "def f(:\n",
                     "d.sh": "true\n", "e.py": "x = 1\n", "f": "("})
        self.assertEqual([p.split(":")[0] for p in scripts.check(tree)], ["a.sh", "b", "c.py"])


class WordsTest(unittest.TestCase):
    def test_forbidden(self):
        for text in ["// TO" + "DO: later\n", "see /ro" + "ot/x\n", "a \n", "a", "a\r\n", "<<<<<<< HEAD\n",
                     "(FIX" + "ME)\n"]:
            self.assertTrue(words.check(Tree({"a.cc": text})), text)

    def test_allowed(self):
        for text in ["/usr/bin/python3\n", "network/work/x\n", "mastodon\n", "a == b\n"]:
            self.assertEqual(words.check(Tree({"a.cc": text})), [], text)


class SizesTest(unittest.TestCase):
    def test_limit(self):
        tree = Tree({"a.cc": "x\n" * sizes.LIMIT, "b.cc": "x\n" * (sizes.LIMIT + 1)})
        self.assertEqual(len(sizes.check(tree)), 1)


if __name__ == "__main__":
    unittest.main()


class TokensTest(unittest.TestCase):
    def test_literals_and_comments(self):
        source = '#define A "no" \\\n  "no"\nx = "a\\"b" /* "no"\n */ + R"(c"d)"; // "no"\nchar q = \'"\'; y = 1\'000;\n'
        found = cpp_tokens.tokens(source)
        self.assertEqual([(t.text, t.line) for t in found if t.kind == "string"], [('a\\"b', 3), ('c"d', 4)])
        self.assertEqual([t.text for t in found if t.kind == "number"], ["1'000"])


class OutlineTest(unittest.TestCase):
    def test_functions(self):
        source = """
namespace a { namespace {
const std::map<int, int> kTable = {{1, 2}};
int x{3};
enum class E { kOne, kTwo };
template <typename T, int n = (1 > 2)>
int Sum(const std::vector<T>& v) COHORT_REQUIRES(mu_) {
  for (;;) { if (x) { return 1; } }
}
}
A::A(int a, int b) : a_{a}, b_(b), c_{1, 2} {
}
A::~A() { if (true) {} }
bool A::operator==(const A& o) const { return true; }
std::function<void(int)> B::Make() && noexcept { return [](int) { Go(); }; }
TEST_F(ATest, Works) {

}
auto f = [](int y) { return y; };
}
"""
        functions, classes = cpp_outline.outline(source)
        self.assertEqual([(f.name, f.lines) for f in functions],
                         [("Sum", 4), ("A::A", 2), ("A::~A", 1), ("operator", 1), ("B::Make", 1), ("TEST_F", 3)])
        self.assertEqual(classes, [])

    def test_public_methods(self):
        source = """
class EXPORT A final : public B<int> {
  int Hidden();
 public:
  explicit A(int);
  ~A() override;
  A& operator=(const A&) = delete;
  bool operator()(int) const;
  int Get() const { return get_; }
  int Get(int) const;
  static std::map<int, std::function<void()>> All(int a = F(1));
  virtual void Do() = 0;
  friend int Friend(A);
  using F = int (*)(int);
  struct Inner { void Step(); int value = Make(); };
  std::function<int(int)> member_;
  int guarded_ COHORT_GUARDED_BY(mu_) = 0;
 private:
  void AlsoHidden();
};
struct P { int X() const; int y{0}; };
enum class Kind { kA };
class Later;
"""
        found = {known.name: known.methods for known in cpp_outline.outline(source)[1]}
        self.assertEqual(found, {"A": {"Get", "All", "Do"}, "A::Inner": {"Step"}, "P": {"X"}})


class CodeSizesTest(unittest.TestCase):
    def problems(self, texts, functions=(), classes=(), folders=()):
        return code_sizes.check(Tree(texts), set(functions), set(classes), set(folders))

    def test_functions(self):
        short, long = ("void F() {\n" + "x();\n" * n + "}\n" for n in (code_sizes.MOST_LINES - 2,
                                                                      code_sizes.MOST_LINES - 1))
        self.assertEqual(self.problems({"cohort/core/a.cc": short}), [])
        self.assertIn("F has 61 lines", self.problems({"cohort/core/a.cc": long})[0])
        self.assertEqual(len(self.problems({"cohort/core/a_test.cc": long})), 1)
        self.assertEqual(self.problems({"cohort/core/a_test.cc": long.replace("void F()", "TEST(A, B)")}), [])

    def test_classes(self):
        def text(name, count):
            return f"class {name} {{\n public:\n" + "".join(f"  void Do{i}();\n  void Do{i}(int);\n"
                                                           for i in range(count)) + "};\n"
        most = code_sizes.MOST_METHODS
        self.assertEqual(self.problems({"cohort/core/a.h": text("A", most)}), [])
        self.assertIn("A has 26 public", self.problems({"cohort/core/a.h": text("A", most + 1)})[0])
        for path, name in [("cohort/core/a.h", "Tensor"), ("cohort/core/a.h", "PlanBuilder"),
                           ("cohort/core/testing/a.h", "A"), ("cohort/core/a_test.cc", "A")]:
            self.assertEqual(self.problems({path: text(name, most + 1)}), [], name)

    def test_folders(self):
        def texts(folder, count):
            return {f"{folder}/s{i}.cc": "" for i in range(count)}
        most = code_sizes.MOST_SOURCES
        more_tests = {"cohort/core/a_test.cc": "", "cohort/core/sub/b.cc": ""}
        self.assertEqual(self.problems({**texts("cohort/core", most), **more_tests}), [])
        self.assertEqual(len(self.problems(texts("cohort/core", most + 1))), 1)
        for folder in ("cohort/ops", "cohort/backends/cpu/kernels"):
            self.assertEqual(self.problems(texts(folder, most + 1)), [])

    def test_exceptions(self):
        long = "void F() {\n" + "x();\n" * code_sizes.MOST_LINES + "}\n"
        self.assertEqual(self.problems({"a.cc": long}, functions=[("a.cc", "F")]), [])
        for arguments in ({"functions": [("a.cc", "G")]}, {"classes": [("a.h", "A")]}, {"folders": ["cohort/core"]}):
            self.assertIn("not needed any more", self.problems({"a.cc": ""}, **arguments)[0])


class BackendDoorsTest(unittest.TestCase):
    def problems(self, path, text, literals=(), includes=()):
        return backend_doors.check(Tree({path: text}), set(literals), set(includes))

    def test_literals(self):
        for literal in ["CPU", "/device:CPU:0", "/cpu:0", "a GPU here", "TEST:", "gpu:1", "/job:a/device:GPU:*"]:
            text = f'const char* a = "{literal}";\n'
            self.assertEqual(len(self.problems("cohort/runtime/a.cc", text)), 1, literal)
            for path in ("cohort/backends/cpu/a.cc", "cohort/runtime/a_test.cc", "cohort/runtime/testing/a.h"):
                self.assertEqual(self.problems(path, text), [], path)
        for literal in ["a test", "/proc/cpuinfo", "TESTS", "CPUS", "latest: 1"]:
            self.assertEqual(self.problems("cohort/runtime/a.cc", f'const char* a = "{literal}";\n'), [], literal)
        self.assertEqual(self.problems("cohort/runtime/a.cc", "// \"CPU\"\n"), [])

    def test_the_constant(self):
        text = 'inline constexpr char kHostDeviceType[] = "CPU";\n'
        self.assertEqual(self.problems("cohort/graph/a.h", text), [])
        self.assertIn("already", self.problems("cohort/graph/a.h", text * 2)[0])

    def test_includes(self):
        for include in ["<omp.h>", "<dnnl.hpp>", '"oneapi/dnnl/dnnl_types.h"', '"cohort/backends/register.h"']:
            text = f"#include {include}\n"
            self.assertEqual(len(self.problems("cohort/runtime/a.cc", text)), 1, include)
            self.assertEqual(self.problems("cohort/backends/cpu/a.cc", text), [], include)
            self.assertEqual(self.problems("cohort/registration.cc", text), [], include)
        self.assertEqual(self.problems("cohort/runtime/a.cc", '#include "cohort/core/comp.h"\n'), [])

    def test_exceptions(self):
        text = '#include <omp.h>\nconst char* a = "CPU";\n'
        path = "cohort/runtime/a.cc"
        self.assertEqual(self.problems(path, text, [(path, "CPU")], [(path, "omp.h")]), [])
        self.assertEqual(len(self.problems(path, "", [(path, "CPU")], [(path, "omp.h")])), 2)


class FormatVersionsTest(unittest.TestCase):
    def problems(self, code, document):
        return format_versions.check(Tree({format_versions.CODE: code, format_versions.DOCUMENT: document}))

    def test_versions(self):
        code = "inline constexpr int32_t kProtocolVersion = 11;\n"
        self.assertEqual(self.problems(code, "the same protocol version (11). A"), [])
        for document in ("the same protocol version (10). A", "", "protocol version (11), protocol version (10)"):
            self.assertIn("'protocol version (11)' once", self.problems(code, document)[0])
        self.assertEqual(len(self.problems("", "protocol version (11)")), 1)
        self.assertEqual(len(format_versions.check(Tree({format_versions.CODE: code}))), 1)


class ActivationNamesTest(unittest.TestCase):
    def problems(self, path, text, named=(), lists=()):
        ops = 'A("Relu", "ReluGrad"); A("Elu", "EluGrad"); A("Tanh", "TanhGrad"); A("features", "scale");\n'
        return activation_names.check(Tree({activation_names.OPS: ops, path: text}), set(named), set(lists))

    def test_product(self):
        for literal in ["Relu", "Tanh", "EluGrad"]:
            text = f'const char* a = "{literal}";\n'
            self.assertEqual(len(self.problems("cohort/runtime/a.cc", text)), 1, literal)
            for path in ("cohort/ops/activation.h", "tests/ops/nn_cases.cc", "bench/a.cc"):
                self.assertEqual(self.problems(path, text), [], path)
        for text in ['a = "features";\n', 'a = "relu";\n', '// "Relu"\n', 'a = "Relu of x";\n']:
            self.assertEqual(self.problems("cohort/runtime/a.cc", text), [], text)

    def test_a_test_may_use_two_and_list_none(self):
        two = 'a = {"Relu", "ReluGrad", "Elu"};\n'
        self.assertEqual(self.problems("cohort/runtime/a_test.cc", two), [])
        self.assertIn("a_test.cc:1", self.problems("cohort/runtime/a_test.cc", two + 'b = "Tanh";\n')[0])

    def test_exceptions(self):
        path = "cohort/runtime/a.cc"
        self.assertEqual(self.problems(path, 'a = "Relu";\n', [(path, "Relu")]), [])
        self.assertIn("not needed", self.problems(path, "", [(path, "Relu")])[0])
