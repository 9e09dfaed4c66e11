#!/usr/bin/env python3
"""A store's life beside other stores of vectors: loading, the first answer of a new process, searching, removing.

    bench/run BUILD store-peers [--rounds 10] [--cases 1000000x128,50000x384+4] [--only warpwave,lancedb,...] [--csv FILE]

Needs numpy, pyarrow and the peers, whose versions bench/run pins. Each step is a process of its own on two cores, and all stores take
their turns in each round. A case is ROWS x DIMENSIONS, random normal numbers with l2, and +4 for four fields beside the id. All stores
get the same Arrow columns. Imports are not counted. Prints and writes medians: wall and processor seconds, the process's greatest memory
beyond the rows that it was given, and the bytes in the store's folder. Removing takes 30% of at most 100,000 rows by id, in one call. Each first
answer is compared with the ten nearest rows. FAISS has its index in a file that it reads and writes whole, with numbers for ids.
"""
import argparse
import csv
import datetime
import importlib
import importlib.metadata
import json
import os
import pathlib
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np

K, QUERIES, CORES = 10, 10, 2
REMOVED, REMOVED_ROWS_MAX = 0.3, 100_000  # the share of the rows; removing from larger cases takes sqlite-vec many minutes
FIELDS = ("title", "year", "price", "language")


def case_rows(case):
    """The rows, dimensions and fields of a case like 50000x384+4."""
    shape, _, fields = case.partition("+")
    count, dim = map(int, shape.split("x"))
    return count, dim, bool(fields)


def columns(count, fields):
    import pyarrow as arrow

    numbers = np.arange(count)
    made = {"id": arrow.array([f"row-{i}" for i in numbers])}
    if fields:
        made |= {"title": arrow.array([f"The title of document {i}" for i in numbers]), "year": arrow.array(1950 + numbers % 75),
                 "price": arrow.array((numbers % 1000) / 8), "language": arrow.array([("de", "en", "fr")[i % 3] for i in numbers])}
    return made


def table_of(rows, columns):
    import pyarrow as arrow

    return arrow.table(columns | {"vector": arrow.FixedSizeListArray.from_arrays(arrow.array(rows.reshape(-1)), rows.shape[1])})


class Warpwave:
    package = None

    def open(self, folder, dim):
        self.store, self.dim = importlib.import_module("warpwave").Store(folder / "store.db", device="cpu"), dim

    def load(self, rows, columns):
        self.store.create("docs", self.dim, metric="l2").add_table(table_of(rows, columns))

    def query(self, query):
        return list(self.store["docs"].search(query, k=K).ids)

    def remove(self, numbers):
        self.store["docs"].remove([f"row-{i}" for i in numbers])

    def close(self):
        self.store.close()


class LanceDb:
    package = "lancedb"

    def open(self, folder, dim):
        self.db, self.dim = importlib.import_module("lancedb").connect(str(folder)), dim

    def load(self, rows, columns):
        self.db.create_table("docs", table_of(rows, columns))

    def query(self, query):
        found = self.db.open_table("docs").search(query).distance_type("l2").limit(K).select(["id", "_distance"])
        return found.to_arrow()["id"].to_pylist()

    def remove(self, numbers):
        self.db.open_table("docs").delete("id IN (" + ", ".join(f"'row-{i}'" for i in numbers) + ")")

    def close(self):
        pass


class SqliteVec:
    package = "sqlite-vec"

    def open(self, folder, dim):
        import sqlite3

        self.db, self.dim = sqlite3.connect(folder / "store.db"), dim
        self.db.enable_load_extension(True)
        importlib.import_module("sqlite_vec").load(self.db)
        self.db.execute("PRAGMA journal_mode = WAL")

    def load(self, rows, columns):
        more = ", +title text, +year integer, +price float, +language text" if "title" in columns else ""
        self.db.execute(f"CREATE VIRTUAL TABLE docs USING vec0(id text primary key, vector float[{self.dim}]{more})")
        values = zip(columns["id"].to_pylist(), (row.tobytes() for row in rows), *(columns[name].to_pylist() for name in FIELDS if more))
        with self.db:
            self.db.executemany(f"INSERT INTO docs VALUES (?, ?{', ?, ?, ?, ?' if more else ''})", values)

    def query(self, query):
        return [i for i, _ in self.db.execute("SELECT id, distance FROM docs WHERE vector MATCH ? AND k = ?", (query.tobytes(), K))]

    def remove(self, numbers):
        with self.db:
            self.db.executemany("DELETE FROM docs WHERE id = ?", ((f"row-{i}",) for i in numbers))

    def close(self):
        self.db.close()


class DuckDb:
    package = "duckdb"

    def open(self, folder, dim):
        self.db, self.dim = importlib.import_module("duckdb").connect(str(folder / "store.duckdb")), dim

    def load(self, rows, columns):
        self.db.register("given", table_of(rows, columns))
        self.db.execute(f"CREATE TABLE docs AS SELECT * REPLACE (vector::FLOAT[{self.dim}] AS vector) FROM given")

    def query(self, query):
        return [i for i, in self.db.execute(f"SELECT id FROM docs ORDER BY array_distance(vector, ?::FLOAT[{self.dim}]) LIMIT {K}",
                                            [query.tolist()]).fetchall()]

    def remove(self, numbers):
        import pyarrow as arrow

        self.db.register("given", arrow.table({"id": [f"row-{i}" for i in numbers]}))
        self.db.execute("DELETE FROM docs WHERE id IN (SELECT id FROM given)")

    def close(self):
        self.db.close()


class Faiss:
    package = "faiss-cpu"

    def open(self, folder, dim):
        self.faiss, self.file = importlib.import_module("faiss"), str(folder / "store.faiss")
        self.index = self.faiss.read_index(self.file) if os.path.exists(self.file) else self.faiss.IndexIDMap2(self.faiss.IndexFlatL2(dim))
        self.changed = False

    def load(self, rows, _columns):
        self.index.add_with_ids(rows, np.arange(len(rows)))
        self.changed = True

    def query(self, query):
        return [f"row-{i}" for i in self.index.search(query[None], K)[1][0]]

    def remove(self, numbers):
        self.index.remove_ids(np.asarray(numbers))
        self.changed = True

    def close(self):
        if self.changed:
            self.faiss.write_index(self.index, self.file)


STORES = {"warpwave": Warpwave, "lancedb": LanceDb, "sqlite-vec": SqliteVec, "duckdb": DuckDb, "faiss": Faiss}


def memory_mb(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1024


def timed(work):
    """Wall and processor seconds, and the most megabytes beyond those at the beginning."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # sets the peak to the present size
    before, start, used = memory_mb("VmRSS"), time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    result = work()
    wall, now = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return {"wall": wall, "cpu": cpu, "MB": max(0.0, memory_mb("VmHWM") - before)}, result


def step(name, what, case, folder):
    """One step of one store, in this process."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    count, dim, fields = case_rows(case)
    store, rows = STORES[name](), np.load(folder / f"{case}.npy", mmap_mode=None if what == "load" else "r")
    given = columns(count, fields) if what == "load" else None
    for module in ("pyarrow", "warpwave" if not store.package else store.package.replace("-", "_").removesuffix("_cpu")):
        importlib.import_module(module)
    queries = np.load(folder / f"{case}.queries.npy")
    removed = np.random.default_rng(3).choice(count, int(count * REMOVED), replace=False)
    first = {"load": lambda: store.load(rows, given), "remove": lambda: store.remove(removed), "first": lambda: store.query(queries[0])}

    def work():
        store.open(folder / "store", dim)
        answer = first[what]()
        if what != "first":  # a write is done when it is in the file
            store.close()
        return answer

    figures, answer = timed(work)
    found = {what: figures}
    if what == "first":
        store.query(queries[0])  # what is loaded at the second search is loaded now
        each = [timed(lambda query=query: store.query(query))[0] for query in queries]
        found["search"] = {part: statistics.median(one[part] for one in each) for part in figures}
        found["right"] = sorted(answer) == sorted(np.load(folder / f"{case}.nearest.npy").tolist())
        store.close()
    print(json.dumps(found))


def prepare(case, folder):
    count, dim, _ = case_rows(case)
    if (folder / f"{case}.nearest.npy").exists():
        return
    random = np.random.default_rng(7)
    rows = random.standard_normal((count, dim), np.float32)
    queries = random.standard_normal((QUERIES, dim), np.float32)
    distances = (rows.astype(np.float64)**2).sum(axis=1) - 2 * (rows @ queries[0].astype(np.float64))
    np.save(folder / f"{case}.npy", rows)
    np.save(folder / f"{case}.queries.npy", queries)
    np.save(folder / f"{case}.nearest.npy", np.array([f"row-{i}" for i in np.argsort(distances)[:K]]))


def round_of(name, case, folder):
    """All steps of one store, each in a process of its own."""
    shutil.rmtree(folder / "store", ignore_errors=True)
    (folder / "store").mkdir()
    found = {}
    for what in ("load", "first", "remove")[:3 if case_rows(case)[0] <= REMOVED_ROWS_MAX else 2]:
        done = subprocess.run([sys.executable, __file__, str(folder), "--step", name, what, case], check=True, stdout=subprocess.PIPE, text=True)
        found |= json.loads(done.stdout.splitlines()[-1])
        found[f"disk {what}"] = sum(f.stat().st_size for f in (folder / "store").rglob("*") if f.is_file()) / 1e6
    shutil.rmtree(folder / "store")
    return found


def line_of(name, case, rounds, tail):
    package = STORES[name].package
    line = {"rows": case, "store": f"{package} {importlib.metadata.version(package)}" if package else "Warpwave"}

    def median(what, part, digits, factor=1):
        values = [one[what][part] if part else one[what] for one in rounds if what in one]
        return f"{factor * statistics.median(values):.{digits}f}" if values else ""

    for what, unit, factor in (("load", "s", 1), ("first", "s", 1), ("search", "ms", 1000), ("remove", "s", 1)):
        line |= {f"{what} {part}, {unit}": median(what, part, 3, factor) for part in ("wall", "cpu")}
    line |= {f"{what} memory, MB": median(what, "MB", 0) for what in ("load", "first")}
    line |= {f"disk after {what}, MB": median(f"disk {what}", None, 1) for what in ("load", "remove")}
    return line | {"right": "yes" if all(one["right"] for one in rounds) else "no", "rounds": len(rounds)} | tail


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--cases", default="1000000x128,50000x384+4")
    parser.add_argument("--only", default=",".join(STORES))
    parser.add_argument("--csv", type=pathlib.Path, help="write the table here")
    parser.add_argument("--machine", default=f"{platform.machine()}, {os.cpu_count()} cores")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        return step(*options.step, options.folder)
    options.folder.mkdir(parents=True, exist_ok=True)
    names, cases = options.only.split(","), options.cases.split(",")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True).stdout.strip()
    found = {(case, name): [] for case in cases for name in names}
    for number in range(options.rounds):
        for case in cases:
            prepare(case, options.folder)
            for turn in range(len(names)):
                name = names[(turn + number) % len(names)]
                found[case, name].append(round_of(name, case, options.folder))
    tail = {"machine": f"{options.machine}, load {os.getloadavg()[2]:.0f}", "date": datetime.date.today().isoformat(), "commit": commit,
            "command": "bench/run BUILD store-peers"}
    table = [line_of(name, case, found[case, name], tail) for case in cases for name in names]
    with open(options.csv or "/dev/stdout", "w", newline="", encoding="utf-8") as to:
        writer = csv.DictWriter(to, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    return None


if __name__ == "__main__":
    main()
