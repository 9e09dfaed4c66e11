"""The code blocks of README and the guide: Python blocks that stand alone are run, and all blocks of C are compiled."""
import re
import shutil
import subprocess

import pytest
from conftest import ROOT, run_python

# What the blocks of C use and do not declare. Devices, collections and stores come from the function around each block, unless it declares them.
DECLARED = {
    "filter": "ww_query query = ww_query_default(); const uint64_t *mask = NULL;",
    "groups": "ww_collection_config config = ww_collection_config_default();",
    "ivf": "int32_t dim = 3; float vector[3] = {0}; ww_results *results = NULL;",
    "kernels": "const void *code = NULL; size_t code_bytes = 0; int64_t count = 5; ww_tensor x = {0}, y = {0};",
    "map": "void draw(float x, float y, int64_t handle);",
    "models": "ww_generation generation = ww_generation_default(); const int32_t *ids = NULL; int64_t count = 0;",
    "quantized": "ww_tensor x = {0}, tokens = {0}; ww_quant *embeddings = NULL, *wq = NULL, *wk = NULL, *wv = NULL;",
    "save": "ww_rows rows = ww_rows_default(); ww_results *saved = NULL; FILE *ids = stdout; int32_t dim = 2;",
    "search": "const char **ids = NULL, **payloads = NULL; const float *vectors = NULL, *queries = NULL; int64_t n = 1, m = 1;"
              " ww_tensor embeddings = {0}, x = {0}; ww_results *results = NULL;",
    "tensors": "void give_back(void *object); void *address = NULL, *object = NULL, *stream = NULL; int64_t rows = 1, columns = 1; double rate = 0.1;"
               + "".join(f" ww_tensor {name} = {{0}};" for name in "x y w1 w2 h z p x_t h_t w2_t e d on dh g1 g2".split()),
}
PARAMETERS = {"device": "ww_device *device", "collection": "ww_collection *collection", "store": "ww_store *store"}


def blocks(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / path).read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize("page, printed", [("docs/guide/from-python.md", "['east' 'northeast']\n"), ("docs/guide/languages.md", "east 0.9939\nnortheast 0.8614\n"),
                                           ("README.md", "['east' 'northeast']\n['north']\n")])
def test_the_first_python_of_a_page_runs(page, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # README writes a store
    assert run_python(blocks(page, "python")[0]) == printed


def test_what_the_guide_names_is_there():
    import warpwave
    guide = (ROOT / "docs/guide/from-python.md").read_text(encoding="utf-8")
    for name in re.findall(r"\bwarpwave\.(\w+)", guide):
        assert hasattr(warpwave, name) or name in ("sklearn", "langchain", "llamaindex", "haystack"), name
    for name in set(re.findall(r"\bc\.(\w+)\(", guide)):
        assert hasattr(warpwave.Collection, name), name


def function_of(page, number, block):
    """A block in a function of its own. What the block declares itself is in an inner scope, and hides what is declared around it."""
    body = re.sub(r"^#include.*\n", "", block, flags=re.M)
    return f"void {page}_{number}({', '.join(PARAMETERS.values())})\n{{\n{DECLARED.get(page, '')}\n{{\n{body}}}\n}}\n"


def compile_c(source):
    command = [shutil.which("cc"), "-std=c11", "-Wall", "-Wextra", "-Wno-unused", "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}", "-x", "c", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_every_block_of_c_compiles():
    headers = sorted(path.name for path in (ROOT / "include/warpwave").glob("*.h") if path.name != "cluster.h")  # that one needs MPI
    source = "#include <stdio.h>\n" + "".join(f"#include <warpwave/{name}>\n" for name in headers)
    found = [(path.stem, number, block) for path in sorted((ROOT / "docs/guide").glob("*.md")) if path.stem != "ranks"
             for number, block in enumerate(blocks(path.relative_to(ROOT), "c"))]
    assert len(found) > 20
    compile_c(source + "".join(function_of(*one) for one in found))
    compile_c(blocks("README.md", "c")[0])
