#!/usr/bin/env python3
"""The checks of `make lint` find what they are for: each is given a fault in a small tree of its own, and the same without it."""
import hashlib
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(path):
    """A script as a module, although its name has a dash."""
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Tree(unittest.TestCase):
    """A repository with copies of some scripts, and other files that a test writes."""

    def setUp(self):
        if not shutil.which("git"):
            print("SKIP: git is not installed")
            self.skipTest("git is not installed")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.git("init", "-q")

    def git(self, *arguments):
        who = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", *who, *arguments], cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "change", "--allow-empty")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def copy(self, *names):
        for name in names:
            (self.root / "scripts").mkdir(exist_ok=True)
            shutil.copy(ROOT / "scripts" / name, self.root / "scripts" / name)

    def run_script(self, name, *arguments):
        done = subprocess.run([sys.executable, f"scripts/{name}", *arguments], cwd=self.root, check=False, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class Phrases(Tree):
    def test_a_phrase_is_found_across_lines_of_a_comment(self):
        self.copy("check-phrases.py", "phrases.txt")
        self.write("src/base/a.c", "/* Room for so\n * many rows. */\n")
        status, said = self.run_script("check-phrases.py")
        self.assertEqual(status, 1)
        self.assertIn('src/base/a.c:1: "so many"', said)
        self.write("src/base/a.c", "/* Room for `count` rows. */\n")
        self.assertEqual(self.run_script("check-phrases.py"), (0, ""))


class Evidence(Tree):
    def setUp(self):
        super().setUp()
        self.copy("evidence.py")
        self.pages = load(ROOT / "scripts/evidence.py").PAGES
        self.write("src/kernels/a.c", "")
        for page in self.pages:
            self.write(f"docs/evidence/{page}.md", "# Title\n\nText.\n")
        self.write("docs/evidence/parity.md", "# Parity\n\n- `cuda:0`: run on hardware: NVIDIA H200, sm_90, waves of 32\n")
        self.lines = ["machine\tdevice\thow\tdate\tdigest", "A Xeon, x86-64\tcpu, avx2\trun\t2026-01-02\tc0ffee",
                      "NVIDIA H200, driver 1\tcuda:0\trun\t2026-01-03\tc0ffee", "A Xeon, x86-64\temulator:32\tfor the host\t2026-01-04\tc0ffee"]
        self.write("docs/evidence/parity-lines.tsv", "\n".join(self.lines) + "\n")
        self.write("scripts/kernels/chips.sh", 'amd="gfx906 gfx942 gfx1100"\nnvidia="sm_80 sm_90a"\n')
        self.write("README.md", "# Front\n\n<!-- runs: scripts/evidence.py -->\ngfx942: emulated; two other targets: compiled\n<!-- end -->\n\nEnd\n")
        self.run_script("evidence.py", "lines")
        self.commit()

    def test_a_page_without_its_commit_is_refused(self):
        status, said = self.run_script("evidence.py", "check")
        self.assertEqual(status, 1)
        self.assertIn("docs/evidence/accuracy.md: no line", said)

    def test_the_front_page_says_what_the_evidence_says(self):
        front = (self.root / "README.md").read_text(encoding="utf-8")
        self.assertIn("- x86-64: run on A Xeon (avx2), 2026-01-02.\n", front)
        self.assertIn("- NVIDIA: run on NVIDIA H200 (sm_90a), 2026-01-03; sm_80: compiled.", front)
        self.assertIn("- AMD: gfx942: emulated; two other targets: compiled.", front)
        self.assertTrue(front.startswith("# Front\n\n<!--") and front.endswith("-->\n\nEnd\n") and "emulator" not in front)
        self.write("docs/evidence/parity-lines.tsv", "\n".join([*self.lines, "Radeon RX 7900, Linux\trocm:0\trun\t2026-02-01\tc0ffee"]) + "\n")
        status, said = self.run_script("evidence.py", "check")
        self.assertEqual(status, 1)
        self.assertIn("README.md says other things of what runs where than the evidence", said)
        self.run_script("evidence.py", "lines")
        self.assertIn("- AMD: run on Radeon RX 7900, 2026-02-01; gfx942: emulated;", (self.root / "README.md").read_text(encoding="utf-8"))

    def test_a_stamped_page_has_its_commit_once_and_its_text(self):
        for _ in range(2):
            self.assertEqual(self.run_script("evidence.py", "stamp", "accuracy")[0], 0)
        text = (self.root / "docs/evidence/accuracy.md").read_text(encoding="utf-8")
        self.assertEqual(text.count("Made by `make check-accuracy` at commit " + self.git("rev-parse", "--short=8", "HEAD")), 1)
        self.assertTrue(text.startswith("# Title\n\nMade by") and text.endswith("\n\nText.\n"))

    def test_sources_with_more_than_100_commits_give_a_warning_and_no_failure(self):
        for page in self.pages:
            self.run_script("evidence.py", "stamp", page)
        self.commit()
        self.assertEqual(self.run_script("evidence.py", "check"), (0, ""))
        for number in range(101):
            self.write("src/kernels/a.c", f"/* {number} */\n")
            self.commit()
        status, said = self.run_script("evidence.py", "check")
        self.assertEqual(status, 0)
        self.assertIn("warning: docs/evidence/parity.md", said)
        self.assertNotIn("accuracy.md", said)


class ExecutedKernels(unittest.TestCase):
    """A tree of one kernel, and the table that says that it was executed on a chip."""

    def setUp(self):
        sys.path.insert(0, str(ROOT / "scripts/kernels"))
        self.addCleanup(sys.path.remove, str(ROOT / "scripts/kernels"))
        self.evidence = load(ROOT / "scripts/kernels/code_evidence.py")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path in ("src/kernels/search", "src/kernels/simt", "build/kernels", "docs/evidence"):
            (self.root / path).mkdir(parents=True)
        self.write("src/kernels/kernels.def", "KERNEL_ENTRY(one, one_dot, one_args)\n")
        self.write("src/kernels/search/one.c", '#include "kernels/simt/simt.h"\nint one(int x) { return x + 1; }\n')
        self.write("src/kernels/simt/simt.h", '#include "kernels/simt/simt_nvidia.h"\n#define LANES 64\n')
        self.write("src/kernels/simt/simt_nvidia.h", "#define WARP 32\n")
        self.write("build/kernels/modules.txt", "".join(f"{chip} one -O3 -I/here/src\n" for chip in self.evidence.CHIPS))
        self.write("README.md", f"{', '.join(self.evidence.CHIPS)}: emulated; {self.others()} other targets: compiled\n")
        self.write("docs/evidence/codeobjects.md", f"{self.evidence.BEGIN}\n{self.evidence.END}\n")
        for name, path in (("KERNELS", "src/kernels"), ("README", "README.md"), ("PAGE", "docs/evidence/codeobjects.md"), ("TABLE", "docs/evidence/codeobjects.tsv")):
            setattr(self.evidence, name, self.root / path)
        self.execute()

    def others(self):
        return self.evidence.NUMBERS[len(self.evidence.other_targets())]

    def write(self, path, text):
        (self.root / path).write_text(text, encoding="utf-8")
        self.evidence.normal.cache_clear()
        self.evidence.included.cache_clear()

    def execute(self):
        """As if every kernel had been executed now."""
        rows = {(chip, kernel): dict.fromkeys(self.evidence.COLUMNS, "1") | {"chip": chip, "module": module, "kernel": kernel, "source": source, "result": "passed"}
                for (chip, kernel), (module, source) in self.evidence.tree(self.root / "build").items()}
        self.evidence.write_table(rows)
        self.evidence.write(self.root / "build")

    def check(self):
        with mock.patch("sys.stderr", io.StringIO()) as said, mock.patch("sys.stdout", io.StringIO()):
            return self.evidence.check(self.root / "build"), said.getvalue()

    def test_what_was_executed_as_it_is_passes(self):
        self.assertEqual(self.check()[0], 0)

    def test_one_line_of_a_kernel_or_of_a_header_or_an_option_that_changed_fails(self):
        for path, text in (("src/kernels/search/one.c", '#include "kernels/simt/simt.h"\nint one(int x) { return x + 2; }\n'),
                           ("src/kernels/simt/simt.h", '#include "kernels/simt/simt_nvidia.h"\n#define LANES 32\n'),
                           ("build/kernels/modules.txt", "gfx942 one -O2 -I/here/src\n")):
            before = (self.root / path).read_text(encoding="utf-8")
            self.write(path, text)
            wrong, said = self.check()
            self.assertEqual(wrong, 1, path)
            self.assertIn("gfx942 is called emulated, but 1 of its kernels changed since they were executed: one_dot", said)
            self.write(path, before)

    def test_comments_places_and_other_machines_do_not_matter(self):
        self.write("src/kernels/search/one.c", '/* why */\n#include "kernels/simt/simt.h"\n\nint one(int x) { return x + 1; } // so\n')
        self.write("src/kernels/simt/simt_nvidia.h", "#define WARP 33\n")
        self.write("build/kernels/modules.txt", "".join(f"{chip} one -O3 -I/elsewhere\n" for chip in self.evidence.CHIPS))
        self.assertEqual(self.check()[0], 0)

    def test_a_kernel_that_was_never_executed_or_failed_takes_the_word_away(self):
        self.write("src/kernels/kernels.def", "KERNEL_ENTRY(one, one_dot, one_args)\nKERNEL_ENTRY(one, one_l2, one_args)\n")
        wrong, said = self.check()
        self.assertEqual(wrong, 1)
        self.assertIn("were never executed: one_l2", said)
        self.write("src/kernels/kernels.def", "KERNEL_ENTRY(one, one_dot, one_args)\n")
        self.evidence.TABLE.write_text(self.evidence.TABLE.read_text(encoding="utf-8").replace("passed", "failed", 1), encoding="utf-8")
        self.assertIn("differ from the CPU: one_dot", self.check()[1])


class Names(unittest.TestCase):
    def test_a_name_that_no_source_has_is_refused(self):
        check = load(ROOT / "scripts/check-docs.py")
        check.check_words("a.md", "`segment_append` and `--known`, `matmul_TYPE`, `m_c`", {"segment_append"}, "--known")
        self.assertEqual(check.offences, [])
        check.check_words("a.md", "`segment_grow()` and `--unknown`", {"segment_append"}, "--known")
        self.assertEqual(len(check.offences), 2)


class Readers(unittest.TestCase):
    def test_a_page_says_who_it_is_for_and_the_front_page_is_short(self):
        check = load(ROOT / "scripts/check-docs.py")
        check.check_reader("docs/guide/a.md", "# A\n\n*For people who read.*\n\nText\n")
        check.check_reader("README.md", "word " * 900)
        self.assertEqual(check.offences, [])
        check.check_reader("docs/guide/a.md", "# A\n\nText for people\n")
        check.check_reader("README.md", "word " * 901)
        self.assertEqual(len(check.offences), 2)

    def test_figures_say_where_they_come_from(self):
        check = load(ROOT / "scripts/check-docs.py")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(check, "ROOT", pathlib.Path(folder)):
            path = pathlib.Path(folder) / "bench/results/a.csv"
            path.parent.mkdir(parents=True)
            path.write_text("rows,machine,date,commit,command\n1,a,2026-01-01,c0ffee,make bench\n", encoding="utf-8")
            check.check_figures({"bench/results/a.csv"})
            self.assertEqual(check.offences, [])
            path.write_text("rows,machine,date,commit,command\n1,a,2026-01-01,,make bench\n", encoding="utf-8")
            check.check_figures({"bench/results/a.csv"})
            self.assertEqual(len(check.offences), 1)


class Picture(unittest.TestCase):
    """The picture of README shows the figures of bench/results."""

    def test_another_figure_is_another_picture(self):
        rows = load(ROOT / "bench/search/rows.py")
        drawn = rows.drawn()
        self.assertEqual(drawn, (ROOT / "bench/search/rows.svg").read_text(encoding="utf-8"))
        for words in ("Fashion-MNIST", "GloVe", ">5.99<", ">9.39 (0.94)<", ">2216<"):
            self.assertIn(words, drawn)
        table = rows.table
        with mock.patch.object(rows, "table", lambda name: [row | {"ms": "6.25"} if row.get("ms") == "5.99" else row for row in table(name)]):
            self.assertIn(">6.25<", rows.drawn())
            self.assertNotIn(">5.99<", rows.drawn())

    def test_of_an_index_the_fastest_good_setting_is_drawn(self):
        rows = load(ROOT / "bench/search/rows.py")
        settings = [{"what": "A, 1", "ms": "1", "recall": "0.5"}, {"what": "A, 2", "ms": "3", "recall": "0.95"}, {"what": "A, 3", "ms": "9", "recall": "0.99"}]
        self.assertEqual(rows.of_data(settings, "A"), (3.0, 0.95))
        self.assertEqual(rows.of_data(settings[:1], "A"), (1.0, 0.5))


class Release(unittest.TestCase):
    def test_versions_that_disagree_are_refused(self):
        release = load(ROOT / "scripts/package/release.py")
        with tempfile.TemporaryDirectory() as folder:
            for name, _ in release.VERSIONS:
                (pathlib.Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, pathlib.Path(folder) / name)
            version = release.agreed_version(pathlib.Path(folder))
            cargo = pathlib.Path(folder) / "rust/Cargo.toml"
            cargo.write_text(cargo.read_text(encoding="utf-8").replace(f'version = "{version}"', 'version = "99.0.0"'), encoding="utf-8")
            with self.assertRaisesRegex(release.Refused, "99.0.0 in rust/Cargo.toml"):
                release.agreed_version(pathlib.Path(folder))

    def test_the_repositorys_address_comes_from_one_file(self):
        release = load(ROOT / "scripts/package/release.py")
        with tempfile.TemporaryDirectory() as folder:
            citation = pathlib.Path(folder) / "CITATION.cff"
            citation.write_text("# Fill in `repository-code: \"https://...\"`.\nversion: 1.2.3\n", encoding="utf-8")
            self.assertEqual(release.repository(pathlib.Path(folder)), "NOASSERTION")
            citation.write_text('version: 1.2.3\nrepository-code: "https://example.org/a"\n', encoding="utf-8")
            self.assertEqual(release.repository(pathlib.Path(folder)), "https://example.org/a")

    def test_a_version_without_its_date_in_the_changelog_is_refused(self):
        release = load(ROOT / "scripts/package/release.py")
        with tempfile.TemporaryDirectory() as folder:
            changelog = pathlib.Path(folder) / "CHANGELOG.md"
            changelog.write_text("## [1.2.3] - 2026-01-02\n", encoding="utf-8")
            release.check_changelog("1.2.3", pathlib.Path(folder))
            changelog.write_text("## [Unreleased]: 1.2.3\n", encoding="utf-8")
            with self.assertRaises(release.Refused):
                release.check_changelog("1.2.3", pathlib.Path(folder))

    def test_the_provenance_names_the_commit_and_the_bytes_of_each_file(self):
        release = load(ROOT / "scripts/package/release.py")
        answers = {"git rev-parse": "c0ffee", "git show": "1700000000", "dpkg-query": "libc6\t2.36\tamd64"}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.deb"
            path.write_bytes(b"bytes")
            with mock.patch.object(release, "run", side_effect=lambda *words: next(text for start, text in answers.items() if " ".join(words).startswith(start))):
                made = release.provenance("1.2.3", [path], ["CHIPS=none"])
        self.assertEqual(made["subject"], [{"name": "a.deb", "digest": {"sha256": hashlib.sha256(b"bytes").hexdigest()}}])
        self.assertEqual((made["_type"], made["predicateType"]), ("https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1"))
        definition = made["predicate"]["buildDefinition"]
        self.assertEqual(definition["externalParameters"], {"version": "1.2.3", "command": ["make", "release", "CHIPS=none"]})
        self.assertEqual([one.get("digest") or one["uri"] for one in definition["resolvedDependencies"]],
                         [{"gitCommit": "c0ffee"}, "pkg:deb/libc6@2.36?arch=amd64"])

    def test_checksums_are_signed_and_another_text_has_not_that_signature(self):
        if not shutil.which("ssh-keygen"):
            self.skipTest("SKIP: ssh-keygen is not installed")
        release = load(ROOT / "scripts/package/release.py")
        with tempfile.TemporaryDirectory() as folder:
            sums, key = pathlib.Path(folder) / "SHA256SUMS-x", pathlib.Path(folder) / "key"
            sums.write_text("00  a.deb\n", encoding="utf-8")
            with mock.patch.dict("os.environ"):
                os.environ.pop("RELEASE_KEY", None)
                self.assertIn("not signed", release.sign(sums))
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
            with mock.patch.dict("os.environ", {"RELEASE_KEY": str(key)}):
                self.assertEqual(release.sign(sums), "signed: SHA256SUMS-x.sig")
                self.assertEqual(release.sign(sums), "signed: SHA256SUMS-x.sig")  # once more over the old one
            signers = pathlib.Path(folder) / "signers"
            signers.write_text('me namespaces="warpwave-release" ' + key.with_suffix(".pub").read_text(encoding="utf-8"), encoding="utf-8")
            for text, good in ((b"00  a.deb\n", True), (b"11  a.deb\n", False)):
                done = subprocess.run(["ssh-keygen", "-Y", "verify", "-f", signers, "-I", "me", "-n", "warpwave-release", "-s", f"{sums}.sig"], input=text,
                                      capture_output=True, check=False)
                self.assertEqual(done.returncode == 0, good, done.stderr)

    def test_actions_of_workflows_are_pinned_to_a_commit(self):
        for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
            for action in re.findall(r"uses: (.*)", path.read_text(encoding="utf-8")):
                self.assertRegex(action, r"^[\w./-]+@[0-9a-f]{40} # v\d", path.name)

    def test_changes_that_are_not_committed_and_the_tag_of_another_version_are_refused(self):
        release = load(ROOT / "scripts/package/release.py")
        for answers, reason in ((["?? new.c"], "not committed"), (["", "v0.0.9"], "the tag v0.0.9")):
            with mock.patch.object(release, "run", side_effect=answers), self.assertRaisesRegex(release.Refused, reason):
                release.check_commit("1.2.3")


class Interface(Tree):
    """scripts/package/abi.py, which compares the headers of a release with those of the one before."""

    def setUp(self):
        super().setUp()
        if not shutil.which("abidiff"):
            print("SKIP: abidiff is not installed")
            self.skipTest("abidiff is not installed")
        self.abi = load(ROOT / "scripts/package/abi.py")
        shutil.copytree(ROOT / "include", self.root / "include")

    def change(self, header, old, new):
        path = self.root / "include/warpwave" / header
        text = path.read_text(encoding="utf-8")
        self.assertEqual(text.count(old), 1)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def test_what_is_added_breaks_no_program(self):
        self.change("device.h", "} ww_memory_info;", "    int64_t more_bytes;\n} ww_memory_info;")
        self.change("filter.h", "WW_FILTER_NONE = 2,", "WW_FILTER_NONE = 2, WW_FILTER_MORE = 3,")
        self.change("status.h", "WW_API ww_status ww_error_set(", "WW_API ww_status ww_error_more(void);\nWW_API ww_status ww_error_set(")
        self.assertIn("work with this one", self.abi.compare(ROOT / "include", self.root / "include"))

    def test_a_program_that_would_break_is_refused_until_the_soname_changes(self):
        breaks = [("device.h", "    int64_t free_bytes;", "    int32_t free_bytes;"),
                  ("device.h", "    int64_t free_bytes;", "    int64_t first_bytes;\n    int64_t free_bytes;"),
                  ("filter.h", "} ww_filter_value;", "    int64_t more;\n} ww_filter_value;"),
                  ("filter.h", "WW_FILTER_ANY = 1,", "WW_FILTER_ANY = 7,"),
                  ("status.h", "WW_API ww_status ww_error_set(ww_status status, const char *message);", ""),
                  ("status.h", "ww_error_set(ww_status status, const char *message);", "ww_error_set(ww_status status);")]
        for header, old, new in breaks:
            before = (self.root / "include/warpwave" / header).read_text(encoding="utf-8")
            self.change(header, old, new)
            with self.assertRaisesRegex(self.abi.Broken, "libwarpwave.so.* would break"):
                self.abi.compare(ROOT / "include", self.root / "include")
            (self.root / "include/warpwave" / header).write_text(before, encoding="utf-8")
        self.change(*breaks[0])
        text = (self.root / "include/warpwave/status.h").read_text(encoding="utf-8")
        text = re.sub(r"(define WW_VERSION_MINOR\s+)(\d+)", lambda found: f"{found[1]}{int(found[2]) + 1}", text)
        (self.root / "include/warpwave/status.h").write_text(text, encoding="utf-8")
        self.assertIn("linked anew", self.abi.compare(ROOT / "include", self.root / "include"))

    def test_the_reference_is_the_newest_tag_before_the_commit(self):
        self.abi.ROOT = self.root
        self.commit()
        self.assertIn("no release", self.abi.main([]))
        self.git("tag", "v0.1.9")
        self.assertIn("no release", self.abi.main([]))
        self.commit()
        self.git("tag", "v0.1.10")
        self.commit()
        self.assertIn("since v0.1.10", self.abi.main([]))
        self.change("device.h", "    int64_t free_bytes;", "    int32_t free_bytes;")
        with self.assertRaisesRegex(self.abi.Broken, "free_bytes"):
            self.abi.main([])


class Reference(unittest.TestCase):
    def test_a_public_function_without_a_comment_is_refused(self):
        reference = load(ROOT / "scripts/api-reference.py")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(reference, "ROOT", pathlib.Path(folder)):
            header = pathlib.Path(folder) / "include/warpwave/a.h"
            header.parent.mkdir(parents=True)
            (pathlib.Path(folder) / "examples").mkdir()
            head = "/* A header. */\n#ifndef WARPWAVE_A_H\n#define WARPWAVE_A_H\n\n"
            header.write_text(head + "/* Does it. */\nWW_API ww_status ww_a(void);\n\n#endif\n", encoding="utf-8")
            self.assertIn("Does it.", reference.section(header, {})[0])
            header.write_text(head + "WW_API ww_status ww_a(void);\n\n#endif\n", encoding="utf-8")
            with self.assertRaisesRegex(SystemExit, "ww_a has no comment"):
                reference.section(header, {})


class Messages(unittest.TestCase):
    def test_a_message_that_names_what_only_c_has_is_refused(self):
        check = load(ROOT / "scripts/check-tree.py")
        check.check_messages("a.c", ['/* ww_drop() */', 'ww_fail(s, "ww_store_open: there is no file %s", p);', 'ww_fail(s, "%s: metric is %d; it must be WW_L2", f, m);'])
        self.assertEqual(check.offences, [])
        check.check_messages("a.c", ['ww_fail(s, "nothing was removed "', '           "(ww_collection_discard() leaves it)");'])
        check.check_messages("a.c", ['ww_fail(s, "screen must be WW_SCREEN_INT8");'])
        self.assertEqual(len(check.offences), 2)


class Headers(unittest.TestCase):
    def test_other_endings_long_integers_and_structs_by_value_are_refused(self):
        check = load(ROOT / "scripts/check-tree.py")
        good = ["typedef struct ww_a {", "    int64_t n; /* as long as it lives */", "} ww_a;", "WW_API void ww_a_make(ww_a *a);",
                "WW_API void ww_b_destroy(ww_b *b);", "/* A long call. */", " * a long text"]
        check.check_headers([("include/warpwave/a.h", good)])
        self.assertEqual(check.offences, [])
        bad = ["typedef struct ww_a {", "} ww_a;", "WW_API ww_a ww_a_make(void);", "WW_API void ww_a_unload(ww_a *a);", "typedef int (*ww_f)(long long n);"]
        check.check_headers([("include/warpwave/a.h", bad)])
        self.assertEqual(len(check.offences), 3)


class Service(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "SKIP: there is no systemd-analyze")
    def test_the_unit_of_systemd_leaves_a_service_little(self):
        unit = (ROOT / "data/warpwave.service").read_text(encoding="utf-8")

        def exposure_is_low(text):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "warpwave.service"
                path.write_text(text, encoding="utf-8")
                return subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", path], capture_output=True, check=False).returncode == 0

        self.assertTrue(exposure_is_low(unit))
        for line in ("SystemCallFilter=@system-service\n", "CapabilityBoundingSet=\n", "DynamicUser=yes\n"):
            self.assertIn(line, unit)
            self.assertFalse(exposure_is_low(unit.replace(line, "")), line)


class Demo(unittest.TestCase):
    def test_models_that_only_a_hub_has_are_left_to_the_command(self):
        done = subprocess.run([str(ROOT / "scripts" / "demo" / "fetch-models.py"), "--help"], capture_output=True, text=True, check=False)
        self.assertRegex(done.stderr, r"^usage: .* FOLDER \[minilm smollm2 ")

    def test_a_sample_of_glosses_is_spread_over_all_kinds_of_words(self):
        glosses = load(ROOT / "scripts/demo/glosses.py")
        with tempfile.TemporaryDirectory() as folder:
            for kind in glosses.KINDS:
                lines = "".join(f"{i:08d} 03 n 01 word_{i} 0 000 @ | what {kind} {i} is; \n" for i in range(25))
                (pathlib.Path(folder) / f"data.{kind}").write_text("  1 a licence | of many words\n" + lines, encoding="latin-1")
            all_of_them = list(glosses.meanings(pathlib.Path(folder)))
        self.assertEqual(len(all_of_them), 100)
        self.assertEqual(all_of_them[25], {"id": "verb.00000000", "text": "what verb 0 is;", "payload": {"words": "word 0", "gloss": "what verb 0 is;", "kind": "verb", "topic": "tops"}})
        chosen = glosses.spread(all_of_them, 8)
        self.assertEqual([one["id"].split(".")[0] for one in chosen], ["noun"] * 2 + ["verb"] * 2 + ["adj"] * 2 + ["adv"] * 2)
        self.assertEqual(len(glosses.spread(all_of_them, 0)), 100)
        self.assertEqual(len(glosses.spread(all_of_them, 1000)), 100)

    def test_a_missing_driver_is_no_gpu(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            kept = build / "demo-text"
            kept.mkdir()
            (kept / "all-MiniLM-L6-v2.q8_0.gguf").touch()
            for glosses in ("10000", "all"):
                (kept / f"wordnet-spread-{glosses}.db.done").touch()
            command = build / "warpwave"
            command.write_text("""#!/bin/sh
case "$*" in
"devices --json") echo '{"devices": [{"id": "cpu", "backend": "cpu"}]}' ;;
devices) printf 'cpu: a processor\\ncuda: no driver (libcuda.so.1 not found)\\n' ;;
search*) cat >/dev/null; printf '{"results": [[]]\\n}\\n' ;;
esac
""", encoding="utf-8")
            command.chmod(0o755)
            done = subprocess.run([ROOT / "scripts/demo/demo-text.sh", build, "a question"], check=True, capture_output=True, text=True)
        self.assertIn("10,000 of the 117,659 glosses", done.stdout)


class Faults(unittest.TestCase):
    def test_the_report_has_words_for_every_kind_of_fault_that_tests_count(self):
        words = load(ROOT / "scripts/fault-report.py").EXPECTED
        counted = {kind for path in (ROOT / "tests").rglob("*.c") for kind in re.findall(r'\bfault_count\("([^"]+)"', path.read_text(encoding="utf-8"))}
        names = re.search(r"names\[INJECT_KINDS\] = \{([^}]*)\}", (ROOT / "testing/inject/inject.h").read_text(encoding="utf-8"))
        counted.update(set(re.findall(r'"([^"]+)"', names.group(1))) - {"none"})
        self.assertGreater(len(counted), 10)
        self.assertEqual(sorted(counted - set(words)), [])


class Floors(unittest.TestCase):
    def page(self):
        absent = {name: mock.MagicMock() for name in ("numpy", "machine", "quant_cases", "search_cases")}
        with mock.patch.dict(sys.modules, absent), mock.patch.object(sys, "path", [str(ROOT / "tests/codeobjects"), *sys.path]):
            return load(ROOT / "tests/codeobjects/performance_page.py")

    def test_the_page_shows_the_times_of_the_table(self):
        page, results = self.page(), {}
        for line in (ROOT / "docs/evidence/amd-performance.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            chip, key, calculated, floor = line.split("\t")
            if calculated != "-":
                results.setdefault(chip, {})[key] = {"seconds": float(calculated) / 1e3, "floor": float(floor) / 1e3}
        rows = [line for line in page.times(results, list(results)) if re.match(r"\| .*\d%", line)]
        shown = (ROOT / "docs/evidence/amd-performance.md").read_text(encoding="utf-8")
        names = lambda lines: [line.split(" | ")[0] for line in lines]  # the table's times are rounded
        self.assertEqual(len(rows), len(page.PAGE))
        self.assertEqual(names(rows), names(re.findall(r"^\| .*\d%.*$", shown, flags=re.M)))

    def test_a_floor_that_is_beaten_is_wrong_and_not_met(self):
        page = self.page()
        product = next(workload for workload in page.WORKLOADS if workload.group == "bytes")
        for floor, verdict in ((0.7, "met"), (1.0, "met"), (1.4, "wrong floor"), (0.1, "missed: ratio")):
            self.assertEqual(page.met(product, {"floor": floor, "seconds": 2.0, "own": {"seconds": 1.0}}, "gfx942"), verdict)

    def test_the_guide_has_the_times_of_the_page(self):
        table = [line.split("\t") for line in (ROOT / "docs/evidence/amd-performance.tsv").read_text(encoding="utf-8").splitlines()]
        milliseconds = {(row[0], row[1]): row[2] for row in table if len(row) == 4}
        cards = re.findall(r'Card\("([^"]+)", "(gfx\w+)"', (ROOT / "tests/codeobjects/cards.py").read_text(encoding="utf-8"))
        guide = (ROOT / "docs/guide/amd.md").read_text(encoding="utf-8")
        for name, chip in cards:
            cells = re.search(rf"^\| {name} \|([^|]+)\|([^|]+)\|([^|]+)\|", guide, flags=re.M).groups()
            for key, cell in zip(("search-1-128-screened", "search-1-768-screened", "search-1000-128-screened"), cells, strict=True):
                number, unit = cell.split()
                told, calculated = float(number) / {"ms": 1, "us": 1000}[unit], float(milliseconds[chip, key])
                self.assertLess(abs(told - calculated), 0.05 * calculated, f"{name}, {key}: the guide says {cell.strip()}, the page {calculated} ms")


if __name__ == "__main__":
    unittest.main()
