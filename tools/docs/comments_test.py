"""What Doxygen is given of a header. Run by tools/docs before it writes anything."""

import unittest

from comments import documented

HEADER = """// Tensor: rows of `a<b>` and @x.
// It has #1.
#pragma once

class Tensor {
 public:
  int x;  // one
          // and more
  int y;
  // Before z.
  int z;
};
// Of B.
class B final : public Tensor {};
const char* kText = "// no comment";
int n;  // NOLINT(name)
"""


class CommentsTest(unittest.TestCase):
    def setUp(self):
        self.lines = documented(HEADER, "cohort/core/tensor.h").split("\n")

    def test_lines_stay(self):
        self.assertEqual(len(self.lines), len(HEADER.split("\n")))

    def test_the_first_comment_is_of_the_file_and_of_its_class(self):
        about = "Tensor: rows of <code>a&lt;b&gt;</code> and \\@x."
        self.assertEqual(self.lines[0], f"/// \\file cohort/core/tensor.h {about}")
        self.assertEqual(self.lines[1], "/// It has \\#1.")
        self.assertEqual(self.lines[4], f"/** {about} It has \\#1. */ class Tensor {{")

    def test_comments_behind_and_before(self):
        self.assertEqual(self.lines[6], "  int x;  ///< one")
        self.assertEqual(self.lines[7], "          ///< and more")
        self.assertEqual(self.lines[9], "  /// Before z.")
        self.assertEqual(self.lines[12:14], ["/// Of B.", "class B final : public Tensor {};"])
        self.assertEqual(self.lines[14], 'const char* kText = "// no comment";')
        self.assertEqual(self.lines[15], "int n;")
