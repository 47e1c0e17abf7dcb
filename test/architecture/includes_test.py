#!/usr/bin/env python3
"""Tests of includes.py: for each rule a tree that breaks it and one that does not."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import includes  # noqa: E402


class Rules(unittest.TestCase):
    def problems(self, files):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder).resolve()
            for name, text in files.items():
                path = tree / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return [one for wrong in includes.check(tree).values() for one in wrong]

    def assert_right(self, files):
        self.assertEqual(self.problems(files), [])

    def assert_wrong(self, files, *texts):
        found = self.problems(files)
        self.assertEqual(len(found), len(texts), found)
        for one, text in zip(found, texts):
            self.assertIn(text, one)

    def test_an_include_that_points_upward(self):
        files = {'src/shim/core/call.hpp': '', 'src/shim/device/device.hpp': ''}
        self.assert_right({**files, 'src/shim/device/pd.cpp': '#include "core/call.hpp"\n#include "device/device.hpp"\n'})
        self.assert_wrong({**files, 'src/shim/core/call.cpp': '\n#include "device/device.hpp"\n'},
                          'src/shim/core/call.cpp:2: points upward: core/ includes device/')

    def test_forward_and_device_do_not_see_each_other(self):
        files = {'src/shim/forward/real.hpp': '', 'src/shim/device/device.hpp': ''}
        self.assert_right({**files, 'src/shim/intercept/pd.cpp': '#include "forward/real.hpp"\n#include "device/device.hpp"\n'})
        self.assert_wrong({**files, 'src/shim/device/pd.cpp': '#include "forward/real.hpp"\n'}, 'do not include each other')

    def test_an_include_in_a_comment_is_none(self):
        self.assert_right({'src/shim/core/a.cpp': '// #include "session/b.hpp"\n/*\n#include "session/b.hpp"\n*/\n',
                           'src/shim/session/b.hpp': ''})

    def test_a_file_that_does_not_exist(self):
        self.assert_wrong({'src/shim/core/a.cpp': '#include "core/b.hpp"\n'}, 'src/shim has no core/b.hpp')

    def test_of_the_toolkit_the_shim_includes_the_errors_only(self):
        self.assert_right({'src/shim/session/a.cpp': '#include <ibvxx/error.hpp>\n',
                           'include/ibvxx/shim/b.hpp': '#include <ibvxx/verb.hpp>\n'})
        for name in 'context', 'ibvxx', 'memory', 'handle':
            self.assert_wrong({'src/shim/session/a.cpp': f'#include <ibvxx/{name}.hpp>\n'}, 'more of the toolkit')
            self.assert_wrong({'include/ibvxx/shim/b.hpp': f'#include <ibvxx/{name}.hpp>\n'}, 'more of the toolkit')

    def test_core_knows_no_device(self):
        self.assert_right({'src/shim/core/a.cpp': '#include <ibvxx/shim/ledger.hpp>\n',
                           'src/shim/device/a.cpp': '#include <ibvxx/shim/device.hpp>\n'})
        self.assert_wrong({'src/shim/core/a.cpp': '#include <ibvxx/shim/device_behaviour.hpp>\n'}, 'core/ knows no device')

    def test_a_file_outside_the_rooms(self):
        self.assert_right({'src/shim/core/deeper/a.cpp': ''})
        self.assert_wrong({'src/shim/a.cpp': ''}, 'src/shim/a.cpp:1: is in none of the rooms core, ')
        self.assert_wrong({'src/shim/fabric/a.cpp': ''}, 'is in none of the rooms')

    def test_a_layer_of_the_toolkit_does_not_include_a_later_one(self):
        self.assert_right({'include/ibvxx/context.hpp': '#include <ibvxx/memory.hpp>\n',
                           'include/ibvxx/memory.hpp': '#include <ibvxx/handle.hpp>\n#include <ibvxx/dmabuf.hpp>\n'})
        for low, high in ('memory', 'context'), ('memory', 'detail/qp_registry'), ('handle', 'memory'), ('error', 'handle'):
            self.assert_wrong({f'include/ibvxx/{low}.hpp': f'#include <ibvxx/{high}.hpp>\n'},
                              f'include/ibvxx/{low}.hpp:1: points upward: <ibvxx/{high}.hpp>')

    def test_the_toolkit_does_not_include_the_shim(self):
        self.assert_right({'include/ibvxx/shim/fault.hpp': '#include <ibvxx/shim/device.hpp>\n',
                           'include/ibvxx/shim/device.hpp': ''})
        self.assert_wrong({'include/ibvxx/memory.hpp': '#include <ibvxx/shim/device.hpp>\n'}, 'includes the shim')

    def test_a_circle(self):
        self.assert_wrong({'src/shim/core/a.hpp': '#include "core/b.hpp"\n', 'src/shim/core/b.hpp': '#include "core/a.hpp"\n'},
                          'in a circle')

    def test_a_header_without_its_source(self):
        header = 'namespace a {\n/// Of b.\n[[nodiscard]] int f(int x) noexcept;\n}\n'
        self.assert_right({'src/shim/core/a.hpp': header, 'src/shim/core/a.cpp': 'namespace a {\nint f(int x) noexcept {\n}\n}\n'})
        self.assert_wrong({'src/shim/core/a.hpp': header}, 'a.hpp:3: declares f, and there is no src/shim/core/a.cpp')
        self.assert_wrong({'src/shim/core/a.hpp': header, 'src/shim/core/a.cpp': 'int g() { return f(1); }\n'},
                          'declares f, which src/shim/core/a.cpp does not define')

    def test_a_member_function_without_its_source(self):
        header = ('struct a {\n  a() = default;\n  virtual void p() = 0;\n  int inline_one() const { return value(1); }\n'
                  '  ~a();\n  int value(int x) const noexcept;\n  int data = 0;\n};\n')
        self.assert_right({'src/shim/core/a.hpp': header,
                           'src/shim/core/a.cpp': 'a::~a() {}\nint a::value(int x) const noexcept {\n}\n'})
        self.assert_wrong({'src/shim/core/a.hpp': header, 'src/shim/core/a.cpp': 'a::~a() {}\n'}, 'declares a::value')

    def test_two_local_functions_of_one_name(self):
        one = 'namespace a {\nnamespace {\n\n[[nodiscard]] int f(int x) {\n  if (g(x)) return 1;\n}\n\n}  // namespace\nvoid h() {\n}\n}\n'
        self.assert_right({'src/shim/core/a.cpp': one, 'src/shim/core/b.cpp': one.replace('f(', 'k(')})
        self.assert_right({'src/shim/core/a.cpp': one + one})
        self.assert_wrong({'src/shim/core/a.cpp': one, 'src/shim/device/b.cpp': one},
                          'src/shim/device/b.cpp:4: f in an unnamed namespace is one of src/shim/core/a.cpp, too')

    def test_a_header_that_is_complete_needs_no_source(self):
        self.assert_right({'src/shim/core/a.hpp': 'template <class T>\nint f(T);\ninline int g(int x) { return f(x); }\n'
                                                  'struct s {\n  int a = f(1);\n  void (*h)(int) = nullptr;\n};\n'})


if __name__ == '__main__':
    unittest.main()
