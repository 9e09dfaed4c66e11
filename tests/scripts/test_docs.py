#!/usr/bin/env python3
"""`make docs`: the site has every page, each link leads somewhere, and its search finds; the manual page has what the reference has.
test_docs.py BUILD, with BUILD/warpwave built."""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = ROOT / "scripts/docs/make-site.py"
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()


def load(path):
    """A script as a module, although its name has a dash."""
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run([ROOT / "scripts/docs/run", BUILD], env=os.environ | {"WARPWAVE_SETUP": "no"}, capture_output=True, text=True, check=False)
        if "markdown-it-py is missing" in done.stderr:
            print("SKIP: " + done.stderr.strip())
            raise unittest.SkipTest("no markdown-it-py")
        assert done.returncode == 0, done.stdout + done.stderr
        cls.site = BUILD / "docs/site"

    def page(self, path):
        return (self.site / path).read_text(encoding="utf-8")

    def test_each_document_is_a_page(self):
        for path in sorted((ROOT / "docs").rglob("*.md")):
            page = self.page(path.relative_to(ROOT).with_suffix(".html"))
            self.assertRegex(page, r"<h1 id=", path)
            self.assertNotRegex(page, r'href="[^":]*\.md["#]', path)
        self.assertIn("make demo", self.page("index.html"))

    def test_the_interfaces_of_c_python_and_http_are_pages(self):
        self.assertIn('id="ww_store_open"', self.page("docs/reference/api.html"))
        python = self.page("docs/reference/python.html")
        for name in ("storecreate", "collectionsearch", "softmax"):
            self.assertIn(f' id="{name}"', python)
        http = self.page("docs/reference/http.html")
        for heading in ("PUT /collections/{collection_name}", "POST /v1/embeddings"):
            self.assertIn(f">{heading}</h2>", http)

    def test_nothing_comes_from_elsewhere(self):
        for path in self.site.rglob("*.html"):
            self.assertNotRegex(path.read_text(encoding="utf-8"), r"<(?:script|link|img)[^>]*(?:src|href)=\"[a-z]+:", path)

    @unittest.skipUnless(shutil.which("node"), "SKIP: there is no node to run the search")
    def test_the_search_finds_sections_by_the_beginnings_of_their_words(self):
        ask = """const fs = require("fs"), search = require(process.argv[1] + "/search.js");
const sections = eval(fs.readFileSync(process.argv[1] + "/search-index.js", "utf8").replace("const SECTIONS =", ""));
const found = (query) => search.findSections(sections, query, 5).map((one) => one.section.a);
console.log(JSON.stringify(["ww_store_op", "hybrid search", "qqqxyz", "", "a.c*("].map(found)));"""
        done = subprocess.run(["node", "-e", ask, self.site], capture_output=True, text=True, check=True)
        by_name, by_words, nothing, empty, _ = json.loads(done.stdout)
        self.assertEqual(by_name[0], "docs/reference/api.html#ww_store_open")
        self.assertEqual(by_words[0], "docs/guide/hybrid-search.html#hybrid-search")
        self.assertEqual((nothing, empty), ([], []))


class Links(unittest.TestCase):
    def test_dead_links_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "a.html").write_text('<p id="x"><a href="b.html#y"></a><a href="#x"></a><a href="https://a.example"></a>', encoding="utf-8")
            (folder / "b.html").write_text('<h1 id="y"><a href="a.html">', encoding="utf-8")
            dead = load(GENERATOR).dead_links
            self.assertEqual(list(dead(folder)), [])
            (folder / "b.html").write_text('<h1 id="z"><a href="c.html"><img src="d.png">', encoding="utf-8")
            self.assertEqual(list(dead(folder)), ["a.html: b.html#y", "b.html: c.html", "b.html: d.png"])


class Generator(unittest.TestCase):
    def test_without_the_generator_the_message_says_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "markdown_it.py").write_text("raise ImportError\n", encoding="utf-8")
            done = subprocess.run([sys.executable, GENERATOR, "out", "command"], env=os.environ | {"PYTHONPATH": folder}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("python3 -m pip install markdown-it-py", done.stderr)


class Manual(unittest.TestCase):
    def setUp(self):
        self.reference = (BUILD / "reference/command.md").read_text(encoding="utf-8")
        self.manual = load(ROOT / "scripts/docs/man-page.py")

    def test_the_reference_has_each_option_of_the_command(self):
        tables = json.loads(subprocess.run([BUILD / "warpwave", "help", "--json"], check=True, capture_output=True, text=True).stdout)
        for command in tables["commands"]:
            section = re.search(rf"^## `warpwave {command['name']}`\n(.*?)(?=^## |\Z)", self.reference, flags=re.M | re.S).group(1)
            for way in command["actions"] or [command]:
                for option in way["options"]:
                    self.assertRegex(section, rf"(?m)^- `{option['name']}[ `]")
        self.assertNotIn("<!-- options of search -->", self.reference)

    def test_the_manual_pages_have_each_command_and_each_option_of_the_reference(self):
        pages = {name: self.manual.page(name, self.reference) for name in self.manual.ABOUT}
        for name, part in re.findall(r"^## `(.*?)`\n(.*?)(?=^## |\Z)", self.reference, flags=re.M | re.S):
            page = pages[name.split()[0]]
            self.assertIn(".SS " + name.replace("-", r"\-"), page)
            for option in re.findall(r"^- `(--?[\w-]+)", part, flags=re.M):
                self.assertIn("\n.TP\n\\fB" + option.replace("-", r"\-"), page)

    def test_the_manual_pages_have_the_environment_and_the_exit_codes(self):
        page = self.manual.page("warpwave", self.reference)
        self.assertIn("\n.TP\n\\fBWARPWAVE_ISA\\fR\n", page)
        self.assertIn("\n.TP\n130\ninterrupted by Ctrl\\-C", page)

    def test_text_is_literal(self):
        self.assertEqual(self.manual.inline(r"`a\|b` and [x](y.md) **c** .\<"), r"\fBa|b\fR and x \fBc\fR .<")
        self.assertEqual(self.manual.inline(".TH -1"), r"\&.TH \-1")

    @unittest.skipUnless(shutil.which("groff"), "SKIP: there is no groff")
    def test_groff_has_no_complaint(self):
        for name in self.manual.ABOUT:
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z"], input=self.manual.page(name, self.reference), capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    unittest.main()
