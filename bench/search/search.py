"""Times exact search on the CPU beside FAISS, in one run with pinned threads, and writes bench/results/cpu-search*.csv and
their pictures.

Every figure is the median of repetitions that are spread over rounds, in which the contestants take turns, so that a change
in the machine's mood meets all of them. Ids are compared: where they differ, the exact scores (in double precision) must be
as close as rounding.
"""
import csv
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import contestants
import datasets
import pictures

HERE = os.path.dirname(os.path.abspath(__file__))
# What is searched: kind of rows (datasets.py), how many, dimension, metric.
SETS = [("normal", 1_000_000, 128, "dot"), ("normal", 1_000_000, 128, "l2"), ("clustered", 1_000_000, 128, "dot"),
        ("normal", 200_000, 768, "dot"), ("normal", 200_000, 768, "l2"), ("clustered", 200_000, 768, "dot")]
BATCHES = {1: 5, 4: 2, 16: 2, 64: 1, 256: 1, 1000: 1}  # queries: repetitions in a round
OURS = ("warpwave", "screened")
# Times FAISS that are wanted, by contestant and (dimension, queries).
WANTED = {"warpwave": {(128, 1): 1.5, (128, 16): 1.5, (128, 1000): 0.5, (768, 1): 1.5, (768, 16): 1.5, (768, 1000): 0.5},
          "screened": {(128, 1): 4, (128, 1000): 5, (768, 1000): 4}}
# What the screen leaves: kind, rows, dimension; and how many queries.
STATISTICS = [("normal", 200_000, 128), ("normal", 200_000, 768), ("clustered", 200_000, 128), ("clustered", 200_000, 768),
              ("digits", 200_000, 64), ("sparse", 200_000, 128), ("heavy-tailed", 200_000, 128), ("near-duplicates", 200_000, 128)]
STATISTICS_QUERIES = 100
# colour, dashes, are points marked?
STYLES = {"screened": ("#0b6e99", "", True), "warpwave": ("#6fb7d6", "", True), "registry": ("#c2500a", "", True),
          "debian": ("#eda268", "", True), "floor": ("#666666", "4 4", False)}
ROUNDS = 3
ADD_TURNS = 7  # of the same rows, each into a new collection, with the screen and without by turns
RESULTS = os.path.join(HERE, "..", "results")


class Player:
    """A contestant's process."""

    def __init__(self, kind, build, environment):
        self.kind = kind
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "contestants.py"), kind, build], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.name = self.ask(do="name")["name"]

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.kind} ended while asked to {request['do']}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def cpu_flags():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith(("flags", "Features")):
                return set(line.split(":")[1].split())
    return set()


def cpu_name():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.machine()


def pinned_environment(threads):
    """One thread a core for the peers as well. OpenBLAS takes processors it does not know for old ones and then multiplies at
    a fraction of their speed, so it is told what the processor can do."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="close", OMP_PLACES="cores",
                       OPENBLAS_NUM_THREADS=str(threads))
    flags = cpu_flags()
    if "avx512f" in flags:
        environment.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
    elif "avx2" in flags:
        environment.setdefault("OPENBLAS_CORETYPE", "Haswell")
    return environment


def players_of(build, environment):
    players = [Player(kind, build, environment) for kind in OURS]
    for kind in ("registry", "debian"):
        try:
            players.append(Player(kind, build, environment))
        except (RuntimeError, BrokenPipeError):
            print(f"bench: no peer '{kind}' here", file=sys.stderr)
    if len(players) == len(OURS):
        sys.exit("bench: no FAISS to compare with; install libfaiss-dev or let pip fetch faiss-cpu")
    return players


def exact_scores(metric, rows, query, ids):
    chosen = rows[ids].astype(np.float64)
    if metric == "dot":
        return -(chosen @ query.astype(np.float64))
    return np.sqrt(((chosen - query.astype(np.float64)) ** 2).sum(axis=1))


def compare_ids(metric, rows, queries, ours, theirs):
    """The share of equal ids; ends the run if an id differs by more than rounding."""
    for q in np.unique(np.nonzero(ours != theirs)[0]):
        mine = exact_scores(metric, rows, queries[q], ours[q])
        other = exact_scores(metric, rows, queries[q], theirs[q])
        if not np.allclose(mine, other, rtol=1e-5, atol=1e-5 * np.abs(mine).max()):
            sys.exit(f"bench: query {q} of {metric}: ids differ beyond rounding: {ours[q]} and {theirs[q]}")
    return float((ours == theirs).mean())


def measure(players, kind, rows, dim, metric, threads, folder):
    """Yields one result for each number of queries."""
    loads = [player.ask(do="load", kind=kind, rows=rows, dim=dim, metric=metric) for player in players]
    for _ in range(ADD_TURNS - 1):
        for player, load in zip(players[:len(OURS)], loads):
            load["add_seconds"] += player.ask(do="load", kind=kind, rows=rows, dim=dim, metric=metric)["add_seconds"]
    seconds = {(p.kind, n): [] for p in players for n in BATCHES}
    reads, rates, int8_rates = [], [], []
    for _ in range(ROUNDS):
        floors = players[0].ask(do="floors", threads=threads, repeat=7)
        reads += floors["read_seconds"]
        rates.append(floors["multiply_rate"])
        int8_rates.append(floors["int8_rate"])
        for queries, repeat in BATCHES.items():
            for player in players:
                answer = player.ask(do="search", queries=queries, repeat=repeat,
                                    ids=os.path.join(folder, f"{player.kind}.{queries}.npy"))
                seconds[player.kind, queries] += answer["seconds"]
    data, questions = datasets.make_rows(kind, rows, dim), datasets.make_queries(kind, contestants.QUERIES, dim)
    for queries in BATCHES:
        found = [np.load(os.path.join(folder, f"{p.kind}.{queries}.npy")) for p in players]
        agreement = [compare_ids(metric, data, questions, found[0], other) for other in found[len(OURS):]]
        times = {p.kind: statistics.median(seconds[p.kind, queries]) for p in players}
        if not np.array_equal(found[0], found[1]):
            sys.exit(f"bench: {kind}, {rows} x {dim}, {metric}, {queries} queries: the screen changed the answer")
        read, products = statistics.median(reads), rows * queries * dim
        int8_rate = statistics.median(int8_rates)
        yield {"kind": kind, "rows": rows, "dim": dim, "metric": metric, "queries": queries, "times": times, "read": read,
               "peer": min(times[p.kind] for p in players[len(OURS):]), "agreement": min(agreement), "load": loads[0],
               "screened": loads[1], "floor": max(read, products / statistics.median(rates)),
               "int8_floor": max(read / 4, products / int8_rate if int8_rate else 0.0), "int8_rate": int8_rate,
               "int8_name": floors["int8_name"]}


def against_peer(result, kind):
    """How many times faster than the faster peer, beside what is wanted."""
    ratio = result["peer"] / result["times"][kind]
    wanted = WANTED[kind].get((result["dim"], result["queries"]))
    if wanted is None:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} ({wanted})" + ("" if ratio >= wanted else " missed")


def name_of(result):
    return [f"{result['rows']:,} x {result['dim']}", result["kind"], result["metric"]]


def search_table(results, players):
    yield (["rows", "kind", "metric", "queries"] + [p.name for p in players] +
           ["full scan, times the faster peer (wanted)", "screen, the same", "floor of the full scan", "floor / full scan",
            "floor of the screen", "floor / screen", "ids equal to the peers'"])
    for r in results:
        yield (name_of(r) + [str(r["queries"])] + [f"{r['times'][p.kind] * 1e3:.2f} ms" for p in players] +
               [against_peer(r, kind) for kind in OURS] +
               [f"{r['floor'] * 1e3:.2f} ms", f"{r['floor'] / r['times']['warpwave']:.0%}",
                f"{r['int8_floor'] * 1e3:.2f} ms", f"{r['int8_floor'] / r['times']['screened']:.0%}", f"{r['agreement']:.2%}"])


def bandwidth_table(results):
    yield ["rows", "kind", "metric", "plain read of the rows", "one query, full scan", "share of the read (wanted: 80%)"]
    for r in results:
        if r["queries"] == 1:
            gigabytes = r["rows"] * ((r["dim"] + 63) // 64 * 64) * 4e-9
            share = r["read"] / r["times"]["warpwave"]
            yield name_of(r) + [f"{gigabytes / r['read']:.1f} GB/s", f"{gigabytes / r['times']['warpwave']:.1f} GB/s",
                                f"{share:.0%}" + ("" if share >= 0.8 else " missed")]


def add_table(results):
    yield ["rows", "kind", "metric", "add (wanted: 1 GB/s)", "with the screen", "its cost (wanted: 1.3)",
           "device memory and ids / padded rows and ids (wanted: 1.05)", "growth of the process / padded rows and ids"]
    for r in results:
        if r["queries"] == 1:
            load, screened = r["load"], statistics.median(r["screened"]["add_seconds"])
            plain = statistics.median(load["add_seconds"])
            padded = r["rows"] * ((r["dim"] + 63) // 64 * 64) * 4 + load["bytes_ids"]
            gigabytes = r["rows"] * r["dim"] * 4e-9
            yield name_of(r) + [f"{gigabytes / plain:.2f} GB/s" + ("" if gigabytes / plain >= 1 else " missed"),
                                f"{gigabytes / screened:.2f} GB/s",
                                f"{screened / plain:.2f}" + ("" if screened / plain <= 1.3 else " missed"),
                                f"{(load['bytes_rows'] + load['bytes_ids']) / padded:.3f}", f"{load['resident_bytes'] / padded:.3f}"]


def statistics_table(left):
    yield ["kind of rows", "dimension", "kept by the screen", "scored", "queries that fell back", "certificate"]
    for (kind, rows, dim), s in left:
        yield [kind, str(dim), f"{s['kept']:.4%}", f"{s['scored']:.4%}", f"{s['fallback']:.0%}", f"{s['certificate']:.3g}"]


def draw(results, left, players):
    """The two pictures of these figures."""
    names = {p.kind: p.name for p in players}
    order = ["screened", "warpwave"] + [p.kind for p in players[len(OURS):]]
    panels = {}
    for r in results:
        series = panels.setdefault((r["kind"], r["rows"], r["dim"], r["metric"]), {kind: [] for kind in order + ["floor"]})
        for kind in order:
            series[kind].append((r["queries"], r["times"][kind] * 1e3))
        series["floor"].append((r["queries"], r["int8_floor"] * 1e3))
    legend = {kind: names[kind] for kind in order} | {"floor": "floor of the screen"}
    titles = [(f"{rows:,} x {dim}, {kind}, {metric}", series) for (kind, rows, dim, metric), series in panels.items()]
    with open(os.path.join(HERE, "search.svg"), "w") as file:
        file.write(pictures.lines_over_batches(f"Exact search on the CPU: time of a batch, k = {contestants.K}", legend, STYLES,
                                               titles, 3))
    bars = [(f"{kind}, {dim}", {"kept": s["kept"], "scored": s["scored"]}) for (kind, _, dim), s in left]
    with open(os.path.join(HERE, "kept.svg"), "w") as file:
        file.write(pictures.bars_over_sets("What the int8 screen leaves to be scored exactly", "share of all pairs of a row and a query",
                                           {"kept": "kept by the screen", "scored": "scored, with the sample and what fell back"},
                                           {"kept": "#0b6e99", "scored": "#eda268"}, bars))


def write_results(results, left, players, threads, environment):
    """One file per table, each row with where it comes from, and the conditions in notes.csv; other files stay as they are."""
    load = os.getloadavg()[0]
    commit = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    origin = [f"{cpu_name()}, {threads} pinned threads", str(datetime.date.today()), commit.stdout.strip() or "unknown", "make bench"]
    rates = statistics.median(r["int8_rate"] for r in results)
    notes = {"cpu-search":
             f"{platform.system()} {platform.release()}; one thread a core; load at the end {load:.1f}, this run included. k = {contestants.K}, f32 rows, "
             f"medians of {ROUNDS} rounds; the contestants take turns. Normal: normal random numbers, each row divided by its length. "
             "Clustered: 1000 centres, rows 1% away from them. The peers' threads are pinned too (OMP_PROC_BIND=close OMP_PLACES=cores), and OpenBLAS is "
             f"set to the processor (OPENBLAS_CORETYPE={environment.get('OPENBLAS_CORETYPE', '')}). The floor is the longer of two times that plain "
             "loops take on the same cores in the same run: reading the rows once, and the multiply-adds of all pairs. For the screen these are reading "
             f"the codes, a quarter of the bytes, and the int8 multiply-adds by {results[0]['int8_name']}, {rates * 2e-9:,.0f} GOP/s. The screen's answers "
             "equal the full scan's. The peers' ids differ where neighbours are closer together than the peers' rounding error.",
             "cpu-search-kept":
             f"What the screen leaves to be scored, for {STATISTICS[0][1]:,} rows and {STATISTICS_QUERIES} queries, k = {contestants.K}, dot, as shares of "
             "all pairs."}
    for name, table in (("cpu-search", search_table(results, players)), ("cpu-search-bandwidth", bandwidth_table(results)),
                        ("cpu-search-add", add_table(results)), ("cpu-search-kept", statistics_table(left))):
        head, *rows = table
        write_csv(name, [head + ["machine", "date", "commit", "command"]] + [row + origin for row in rows])
    with open(os.path.join(RESULTS, "notes.csv"), newline="") as file:
        others = [row for row in csv.reader(file) if not row[0].startswith("cpu-search")]
    write_csv("notes", others + [list(note) for note in notes.items()])


def write_csv(name, rows):
    with open(os.path.join(RESULTS, f"{name}.csv"), "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main():
    build = sys.argv[1]
    threads = len(os.sched_getaffinity(0))
    environment = pinned_environment(threads)
    players = players_of(build, environment)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, rows, dim, metric in SETS:
            for result in measure(players, kind, rows, dim, metric, threads, folder):
                results.append(result)
                print(f"{kind} {rows} x {dim} {metric} {result['queries']:5}: " +
                      ", ".join(f"{name} {t * 1e3:.2f} ms" for name, t in result["times"].items()) +
                      f"; {against_peer(result, 'warpwave')} and {against_peer(result, 'screened')} times, "
                      f"floors {result['floor'] * 1e3:.2f} and {result['int8_floor'] * 1e3:.2f} ms", flush=True)
    left = [((kind, rows, dim), players[1].ask(do="statistics", kind=kind, rows=rows, dim=dim, metric="dot",
                                               queries=STATISTICS_QUERIES)) for kind, rows, dim in STATISTICS]
    draw(results, left, players)
    write_results(results, left, players, threads, environment)
    for player in players:
        player.close()


if __name__ == "__main__":
    main()
