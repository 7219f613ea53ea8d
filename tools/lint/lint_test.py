"""Each check finds what it is there for, and leaves alone what is right."""

import unittest

import document_paths
import include_order
import listed_sources
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

    def test_missing_umbrella(self):
        self.assertEqual(len(public_headers.check(Tree({"cohort/core/b.h": "#pragma once\n"}))), 1)


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
