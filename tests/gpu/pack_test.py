#!/usr/bin/env python3
"""Tests tests/gpu/pack.sh with a small program and a library of its own: pack_test.py COMPILER.

The archive is unpacked, and its test.sh runs the program by a link. The other tests give pack.sh limits that are too low, or a
program that would not run on the other machine."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
COMPILER = "c++"
LIBRARY = 'extern "C" const char* Text() { return "[==========] 1 test from 1 test suite ran.\\n[  PASSED  ] 1 test."; }\n'
PROGRAM = ('#include <stdio.h>\n#include <string.h>\nextern "C" const char* Text();\n'
           'int main(int, char** argv) { puts(Text()); return strstr(argv[0], "cuda_test") ? 0 : 1; }\n')


def compile_text(text, *arguments):
    subprocess.run([COMPILER, "-x", "c++", "-", *map(str, arguments)], input=text, text=True, check=True)


class PackTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.built = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.built)
        cls.libraries = cls.built / "libraries"
        cls.libraries.mkdir()
        library = cls.libraries / "libtext_of_test.so"
        compile_text(LIBRARY, "-fPIC", "-shared", "-Wl,-soname,libtext_of_test.so", "-o", library)
        compile_text(PROGRAM, "-o", cls.built / "program", "-x", "none", library, "-Wl,--disable-new-dtags",
                     "-Wl,-rpath,$ORIGIN/../lib")
        compile_text(PROGRAM, "-o", cls.built / "without_rpath", "-x", "none", library, "-Wl,-rpath," + str(cls.libraries))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.archive = self.folder / "pack.tar.xz"

    def pack(self, program="program", name="cuda_test", **variables):
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.libraries), **variables)
        return subprocess.run(["bash", str(HERE / "pack.sh"), str(self.built), str(self.archive), program, name],
                              env=environment, text=True, capture_output=True, timeout=60, check=False)

    def test_the_archive_runs_where_it_is_unpacked(self):
        packed = self.pack()
        self.assertEqual(packed.returncode, 0, packed)
        self.assertIn("MiB, 1 programs, 1 libraries", packed.stdout)
        subprocess.run(["tar", "-C", str(self.folder), "-xf", str(self.archive)], check=True)
        unpacked = self.folder / "cohort-gpu"
        self.assertTrue((unpacked / "bench" / "run.sh").exists())
        self.assertTrue((unpacked / "LICENSE").exists())
        hidden = self.libraries.rename(self.built / "hidden")  # so the program uses the library of the archive
        self.addCleanup(hidden.rename, self.libraries)
        signs = self.folder / "sign"
        command = ["bash", str(unpacked / "test.sh"), "--no_sanitizer"]
        environment = dict(os.environ, COHORT_CARD_SIGNS=str(signs))
        run = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual(run.returncode, 3, run)
        self.assertIn("There is no GPU here", run.stderr)
        signs.write_text("a driver", encoding="utf-8")
        run = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual(run.returncode, 0, run)
        self.assertRegex(run.stdout, r"cuda_test +\d+ s  ok  \[ PASSED \] 1 test")

    def test_an_archive_that_is_too_large_is_an_error(self):
        packed = self.pack(COHORT_PACK_MOST_BYTES="1000")
        self.assertEqual(packed.returncode, 1, packed)
        self.assertRegex(packed.stderr, r"the archive has \d{4,} bytes; at most 1000 are allowed")

    def test_a_function_of_a_later_glibc_is_an_error(self):
        packed = self.pack(COHORT_PACK_GLIBC="2.2.4")
        self.assertEqual(packed.returncode, 1, packed)
        self.assertRegex(packed.stderr, r"bin/program needs GLIBC_2\.\d+; the other machine may have no more than GLIBC_2\.2\.4")
        self.assertFalse(self.archive.exists())

    def test_a_program_that_takes_a_library_from_elsewhere_is_an_error(self):
        packed = self.pack("without_rpath")
        self.assertEqual(packed.returncode, 1, packed)
        self.assertIn("without_rpath takes libtext_of_test.so from", packed.stderr)

    def test_a_suite_that_lists_no_tests_is_an_error(self):
        packed = self.pack(name="other_test")
        self.assertEqual(packed.returncode, 1, packed)
        self.assertIn("other_test, as a link to program, lists no tests", packed.stderr)

    def test_a_program_that_is_not_there_is_named(self):
        packed = self.pack("missing")
        self.assertEqual(packed.returncode, 1, packed)
        self.assertIn("there is no program " + str(self.built / "missing"), packed.stderr)


if __name__ == "__main__":
    COMPILER = sys.argv.pop(1)
    unittest.main()
