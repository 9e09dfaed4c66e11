#!/usr/bin/env python3
"""A node that follows PostgreSQL beside PostgreSQL's own programs, in one run: how fast it copies and follows, how soon a commit is visible, what a shard
costs, and pgvector beside it.

    python3 bench/cluster/cluster.py BUILD [--rows 1000000] [--changes 200000] [--only copy,follow,visible,shards,pgvector] [--vectors 200000]

Needs PostgreSQL with `wal_level = logical` as Debian installs it; `pgvector` also needs the packages pgserver, numpy and psycopg2-binary (it is left out, and
says so, where they are missing). Everything is on this machine and ends with the script. Prints markdown.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/server/cluster"))
from database import Database, Follower, find_postgres  # noqa: E402

DIM = 128
OPTIONS = ["--table", "public.docs", "--vector", "embedding", "--payload", "year", "--metric", "dot"]


def binary_rows(first, count, random_):
    """Rows for COPY: id bigint, embedding float4[], year int."""
    head = struct.pack(">hiq", 3, 8, 0)[:6]
    array = struct.pack(">iiiiii", 20 + 8 * DIM, 1, 0, 700, DIM, 1)
    number = struct.Struct(">" + "if" * DIM)
    values = [[random_.gauss(0, 1) for _ in range(DIM)] for _ in range(512)]
    numbers = [value for vector in values for value in vector]
    for i in range(first, first + count):
        at = random_.randrange(len(numbers) - DIM)
        parts = [4] * (2 * DIM)
        parts[1::2] = numbers[at:at + DIM]
        parts[1] = i % 1000 / 100
        yield head + struct.pack(">q", i) + array + number.pack(*parts) + struct.pack(">ii", 4, 1990 + i % 30)


def fill(database, first, count):
    """Writes rows in one COPY; returns the seconds."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        for row in binary_rows(first, count, random.Random(first)):
            file.write(row)
        file.write(struct.pack(">h", -1))
        file.flush()
        begun = time.perf_counter()
        database.sql(f"\\copy docs FROM '{file.name}' (FORMAT binary)")
        return time.perf_counter() - begun


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def node_of(command, database, *options, advertise=False):
    node = Follower(command, database, *OPTIONS, *options, advertise=advertise)
    node.wait(lambda: node.state()["state"] == "following", "following", seconds=600)
    return node


def reach(node, lsn):
    node.wait(lambda: [int(part, 16) for part in node.state()["lsn"].split("/")] >= [int(part, 16) for part in lsn.split("/")], "catching up", seconds=600)


def bench_copy(command, database, rows):
    alone, own = [], []  # seconds, and processor seconds of the session and of the node
    for _ in range(3):
        session = Session(database)
        backend = int(session.run("SELECT pg_backend_pid();"))
        before, begun = processor_seconds(backend), time.perf_counter()
        session.run("\\o /dev/null\nCOPY (SELECT * FROM docs) TO STDOUT (FORMAT binary);\n\\o\nSELECT 1;")
        alone.append((time.perf_counter() - begun, processor_seconds(backend) - before))
        session.end()
        begun = time.perf_counter()
        node = node_of(command, database)
        own.append((time.perf_counter() - begun, processor_seconds(node.process.pid)))
        forget(node)
    print(f"\n## Copy of {rows:,} x {DIM}\n\n| | seconds | rows a second | processor seconds |\n|---|--:|--:|--:|")
    for name, some in (("COPY TO alone, its session", alone), ("the node's copy, the node", own)):
        seconds, processor = (statistics.median(column) for column in zip(*some))
        print(f"| {name} | {seconds:.2f} | {rows / seconds:,.0f} | {processor:.2f} |")
    print(f"\nShare of COPY's rate: {statistics.median(one[0] for one in alone) / statistics.median(one[0] for one in own):.2f} (wanted: 0.5)", flush=True)


def forget(node):
    """Stops a node and removes what the database keeps for it."""
    node.stop()
    listed = subprocess.run([node.command, "cluster", "list", "--follow", node.database.conninfo], capture_output=True, text=True, check=True).stdout
    for name in re.findall(r"^(warpwave_\w+) +gone", listed, re.M):
        subprocess.run([node.command, "cluster", "remove", name, "--follow", node.database.conninfo], stdout=subprocess.DEVNULL, check=True)


def bench_follow(command, database, rows, changes):
    """The same changes are taken by pg_recvlogical, with the plugin that the node uses, and by a node that was stopped meanwhile."""
    node = node_of(command, database)
    publication = database.sql("SELECT pubname FROM pg_publication")
    print(f"\n## Following {changes:,} x {DIM} inserted rows\n\n| | pg_recvlogical: rows a second | the node | share (wanted: 0.7) | processor seconds of the node |\n|---|--:|--:|--:|--:|")
    first = 10 * rows
    for name, size in [("one transaction", changes), ("transactions of 100 rows", 100)]:
        database.sql("SELECT pg_create_logical_replication_slot('beside', 'pgoutput')")
        node.kill()
        for at in range(0, changes, size if size > 100 else 100 * 100):
            batch = size if size > 100 else 100 * 100
            if size == changes:
                fill(database, first + at, batch)
            else:  # as many transactions as there are hundreds of rows, without a COPY for each
                database.sql("\n".join(f"INSERT INTO docs SELECT id + {first + at}, embedding, year FROM docs WHERE id BETWEEN {100 * i} AND {100 * i + 99};"
                                       for i in range(batch // 100)))
        first += changes
        lsn = database.lsn()
        begun = time.perf_counter()
        subprocess.run(database.account + [str(database.binaries / "pg_recvlogical"), "-d", database.conninfo, "--slot", "beside", "--start", "-f", "/dev/null", "--endpos", lsn,
                                           "-o", "proto_version=1", "-o", f"publication_names={publication}"], check=True, cwd="/", stderr=subprocess.DEVNULL)
        alone = time.perf_counter() - begun
        begun = time.perf_counter()
        node.start()
        reach(node, lsn)
        own = time.perf_counter() - begun
        database.sql("SELECT pg_drop_replication_slot('beside')")
        print(f"| {name} | {changes / alone:,.0f} | {changes / own:,.0f} | {alone / own:.2f} | {processor_seconds(node.process.pid):.2f} |", flush=True)
    forget(node)


class Session:
    """A session of psql that stays open."""

    def __init__(self, database):
        self.process = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", database.conninfo], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, sql):
        self.process.stdin.write(sql + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def bench_visible(command, database, rows, rate=500, seconds=20):
    node, session, asked, late = node_of(command, database), Session(database), [], 0
    pool = concurrent.futures.ThreadPoolExecutor(64)  # more than wait at a time, so that none waits for a thread

    def visible(lsn, committed):
        status = node.ask("POST", "/collections/docs/points/count", {"exact": False}, **{"x-warpwave-min-lsn": lsn})[0]
        assert status == 200
        return time.perf_counter() - committed

    begun = time.perf_counter()
    for i in range(rate * seconds):
        wait = begun + i / rate - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        late += wait < -0.1
        lsn = session.run(f"INSERT INTO docs SELECT {100 * rows + i}, embedding, year FROM docs WHERE id = {i}; SELECT pg_current_wal_lsn();")
        if i % 20 == 0:
            asked.append(pool.submit(visible, lsn, time.perf_counter()))
    took = time.perf_counter() - begun
    times = sorted(1e3 * one.result() for one in asked)
    session.end()
    forget(node)
    print(f"\n## Commit to visible, {rate} rows a second\n\n{len(times)} of {rate * seconds:,} commits, each asked for with `x-warpwave-min-lsn`, over HTTP, on a connection of its "
          f"own; {rate * seconds / took:.0f} rows a second were written, {late} of them more than 0.1 s late.\n\n| median | p99 | greatest |\n|--:|--:|--:|\n"
          f"| {statistics.median(times):.1f} ms | {times[int(0.99 * len(times))]:.1f} ms | {times[-1]:.1f} ms |\n\nWanted: 10 ms and 50 ms.", flush=True)


def bench_shards(command, database):
    nodes = [node_of(command, database, "--shard", f"{i}/2", advertise=True) for i in (1, 2)]
    for node in nodes:
        node.wait(lambda node=node: sum(one["alive"] for one in node.ask("GET", "/cluster")[1]["result"]["nodes"]) == 2, "seeing the other")
    random_ = random.Random(1)
    times = {"shard 1": [], "shard 2": [], "both, from node 1": []}
    for i in range(420):
        body = {"query": [random_.gauss(0, 1) for _ in range(DIM)], "limit": 10}
        for name, node, headers in [("shard 1", nodes[0], {"x-warpwave-part": "1/2"}), ("shard 2", nodes[1], {"x-warpwave-part": "2/2"}), ("both, from node 1", nodes[0], {})]:
            begun = time.perf_counter()
            status = node.ask("POST", "/collections/docs/points/query", body, **headers)[0]
            assert status == 200
            if i >= 20:
                times[name].append(1e3 * (time.perf_counter() - begun))
    for node in nodes:
        node.stop()
    forget_all(nodes[0])
    medians = {name: statistics.median(some) for name, some in times.items()}
    print("\n## A search over two shards on one machine\n\n| | median | p99 |\n|---|--:|--:|")
    for name, some in times.items():
        print(f"| {name} | {medians[name]:.2f} ms | {sorted(some)[int(0.99 * len(some))]:.2f} ms |")
    print(f"\nMore than the slower shard: {medians['both, from node 1'] - max(medians['shard 1'], medians['shard 2']):.2f} ms (wanted: 1 ms)", flush=True)


def forget_all(node):
    listed = subprocess.run([node.command, "cluster", "list", "--follow", node.database.conninfo], capture_output=True, text=True, check=True).stdout
    for name in re.findall(r"^(warpwave_\w+) ", listed, re.M):
        subprocess.run([node.command, "cluster", "remove", name, "--force", "--follow", node.database.conninfo], stdout=subprocess.DEVNULL, check=True)


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("build", type=pathlib.Path)
    reader.add_argument("--rows", type=int, default=1000000)
    reader.add_argument("--changes", type=int, default=200000)
    reader.add_argument("--vectors", type=int, default=200000)
    reader.add_argument("--only", default="copy,follow,visible,shards,pgvector")
    given = reader.parse_args()
    wanted, command = given.only.split(","), str(given.build / "warpwave")
    binaries = find_postgres()
    if not binaries:
        raise SystemExit("PostgreSQL is not installed (postgresql)")
    if set(wanted) & {"copy", "follow", "visible", "shards"}:
        database = Database(binaries)
        try:
            print("PostgreSQL: " + database.sql("SELECT version()") + f"; {given.rows:,} rows of {DIM} numbers", flush=True)
            database.sql("CREATE TABLE docs (id bigint PRIMARY KEY, embedding float4[], year int)")
            fill(database, 0, given.rows)
            database.sql("VACUUM ANALYZE docs; CHECKPOINT")
            if "copy" in wanted:
                bench_copy(command, database, given.rows)
            if "follow" in wanted:
                bench_follow(command, database, given.rows, given.changes)
            if "visible" in wanted:
                bench_visible(command, database, given.rows)
            if "shards" in wanted:
                bench_shards(command, database)
        finally:
            database.remove()
    if "pgvector" in wanted:
        from beside_pgvector import bench_pgvector  # its packages may be missing
        bench_pgvector(command, given.vectors)


if __name__ == "__main__":
    main()
