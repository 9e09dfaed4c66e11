"""The code blocks of README and the guide: blocks of Python are run, and all blocks of C are compiled."""
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

import pytest
from conftest import ROOT, run_python
from small_models import CHATML, write_decoder, write_encoder

pytestmark = pytest.mark.check

# What the blocks of C use and do not declare. Devices, collections and stores come from the function around each block, unless it declares them.
DECLARED = {
    "filter": "ww_query query = ww_query_default(); const uint64_t *mask = NULL;",
    "groups": "ww_collection_config config = ww_collection_config_default();",
    "ivf": "int32_t dim = 3; float vector[3] = {0}; ww_results *results = NULL;",
    "kernels": "const void *code = NULL; size_t code_bytes = 0; int64_t count = 5; ww_tensor x = {0}, y = {0}; const char *source = \"\"; ww_module *module;",
    "map": "void draw(float x, float y, int64_t handle);",
    "models": "ww_generation generation = ww_generation_default(); const int32_t *ids = NULL; int64_t count = 0;",
    "quantized": "ww_tensor x = {0}, tokens = {0}; ww_quant *embeddings = NULL;",
    "save": "ww_rows rows = ww_rows_default(); ww_results *saved = NULL; FILE *ids = stdout; int32_t dim = 2;",
    "search": "const char **ids = NULL, **payloads = NULL; const float *vectors = NULL, *queries = NULL; int64_t n = 1, m = 1;"
              " ww_tensor embeddings = {0}, x = {0}; ww_results *results = NULL;",
    "multivectors": "ww_collection *docs = collection; ww_rows rows = ww_rows_default(); ww_query query = ww_query_default(); ww_results *results = NULL;",
    "sparse-vectors": "ww_collection *docs = collection; ww_rows rows = ww_rows_default(); ww_query query = ww_query_default(); ww_results *results = NULL;",
    "tensors": "void give_back(void *object); void *address = NULL, *object = NULL, *stream = NULL; int64_t rows = 1, columns = 1;"
               " ww_tensor x = {0};",
}
# What the blocks of Python use and do not define. The pages name models; small ones with random weights stand for them. from-sql runs where Python
# can load extensions; the client of the server's page is tested by tests/server/clients/nightly-server.
VECTORS = """
import numpy as np
import warpwave
rng = np.random.default_rng(5)
vectors = rng.standard_normal((1100, 384)).astype(np.float32)
ids = [*(f"row {i}" for i in range(1098)), "east", "north"]
payloads = [{"year": 1900 + i % 120, "lang": "en" if i % 2 else "de"} for i in range(1100)]
queries, query, q, mask, handle = vectors[:3], vectors[0], vectors[0], np.ones(2200, bool), 0
c = warpwave.Collection(384)
c.add(vectors, ids=ids, payloads=payloads)
"""
NOTES = """
import warpwave
text = "Squirrels live in trees. They store nuts. " * 9
notes = warpwave.Store("given.db").create("notes", model="minilm.gguf")
notes.add(texts=["a squirrel stores nuts", "a boat with sails"], payloads=[{"year": 1999, "source": "a"}, {"year": 2005, "source": "b"}])
scores_of = lambda query, texts: [float(len(text)) for text in texts]
"""
STORE = """
import sqlite3
vectors, p, connection = vectors[:, :384], "table.parquet", sqlite3.connect("other.db")
rows = warpwave.Collection(384)
rows.add(vectors[:3], ids=["x", "y", "z"])
rows.to_parquet("rows.parquet")
texts, encode = ["a text"] * len(vectors), lambda texts: np.ones((len(texts), 384))
if not hasattr(connection, "enable_load_extension"):  # then load() is refused, and says so
    warpwave.load = lambda connection: None
"""
SQL = """
import sqlite3
db = sqlite3.connect("docs.db")
db.enable_load_extension(True)
db.load_extension("build/sqlite/warpwave")
db.execute("CREATE VIRTUAL TABLE docs USING warpwave(dim=384)")
"""
# Random weights need not end a text as JSON within its tokens.
MODELS = NOTES + "import types\njson = types.SimpleNamespace(loads=lambda text: text)\n"
DEFINED = {"filter": VECTORS, "from-python": VECTORS + STORE, "from-sql": SQL, "hybrid-search": NOTES, "ivf": VECTORS, "map": VECTORS, "models": MODELS,
           "text-collections": NOTES}
RUN = {"from-python": slice(1, 4)}  # the other blocks need a GPU, an event loop or packages
PARAMETERS = {"device": "ww_device *device", "collection": "ww_collection *collection", "store": "ww_store *store"}


def blocks(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / path).read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize("page, printed", [("docs/guide/from-python.md", "['east' 'northeast']\n"), ("docs/guide/multivectors.md", "['a' 'b'] [3.  1.5]\n"),
                                           ("docs/guide/sparse-vectors.md", "['b' 'a']\n")])
def test_the_first_python_of_a_page_runs(page, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_python(blocks(page, "python")[0]) == printed


def test_the_example_by_ctypes_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_python((ROOT / "examples/search_ctypes.py").read_text(encoding="utf-8")) == "east 0.9939\nnortheast 0.8614\n"


def test_the_readme_runs_as_printed(tmp_path, monkeypatch):
    """With the model that README names, if WARPWAVE_MODELS has it, the answer is the printed one; else one with random weights takes its place, which
    finds other texts by their meaning."""
    monkeypatch.chdir(tmp_path)
    models = pathlib.Path(os.environ.get("WARPWAVE_MODELS", tmp_path))
    real = next((path for path in (models / "minilm.gguf", models / "all-MiniLM-L6-v2") if path.exists()), None)
    if real:
        (tmp_path / "minilm.gguf").symlink_to(real)
    else:
        write_models(tmp_path)
    (code,) = blocks("README.md", "python")
    (printed,) = re.findall(r"^It prints:\n\n```\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M | re.S)
    answer = run_python(code)
    if real:
        assert answer == printed
    else:
        begins = [re.split(r": |#", line)[0] for line in printed.splitlines()]
        assert [re.split(r": |#", line)[0] for line in answer.splitlines()][:2] == begins[:2]
        assert len(answer.splitlines()) == len(begins)


def write_models(folder):
    write_encoder(folder / "minilm.gguf", context=512)
    write_encoder(folder / "bge-reranker.gguf", context=64, ranks=True)
    write_decoder(folder / "smollm2.gguf", context=4096, template=CHATML)


@pytest.mark.parametrize("page", sorted(DEFINED))
def test_every_block_of_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_models(tmp_path)
    if page == "from-sql":
        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            pytest.skip("SKIP: this Python was built without load_extension()")
        (tmp_path / "build").symlink_to(os.environ["WARPWAVE_BUILD"])
    run_python(DEFINED[page] + "\n".join(blocks(f"docs/guide/{page}.md", "python")[RUN.get(page, slice(None))]), timeout=120)


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
    return f"void {page.replace('-', '_')}_{number}({', '.join(PARAMETERS.values())})\n{{\n{DECLARED.get(page, '')}\n{{\n{body}}}\n}}\n"


def compile_c(source, compiler="cc"):
    command = [shutil.which(compiler), "-std=c11", "-Wall", "-Wextra", "-Wno-unused", "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}", "-x", "c", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_every_block_of_c_compiles():
    headers = sorted(path.name for path in (ROOT / "include/warpwave").glob("*.h") if path.name != "cluster.h")  # that one needs MPI
    source = "#include <stdio.h>\n" + "".join(f"#include <warpwave/{name}>\n" for name in headers)
    found = [(path.stem, number, block) for path in sorted((ROOT / "docs/guide").glob("*.md")) if path.stem not in ("ranks", "start")
             for number, block in enumerate(blocks(path.relative_to(ROOT), "c"))]
    assert len(found) >= 18
    compile_c(source + "".join(function_of(*one) for one in found))
    compile_c(blocks("docs/guide/start.md", "c")[0])


def test_the_blocks_of_c_for_ranks_compile():
    if not shutil.which("mpicc"):
        pytest.skip("SKIP: mpicc is not installed")
    found = blocks("docs/guide/ranks.md", "c")
    body = re.sub(r"^#include.*\n", "", "\n".join(found), flags=re.M)
    compile_c("#include <warpwave.h>\n#include <warpwave/cluster.h>\nvoid ranks(int argc, char **argv, int level, int rank, ww_device *device, ww_rows rows,"
              f" const float *queries)\n{{\n{body}}}\n", "mpicc")
