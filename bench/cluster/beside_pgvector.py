"""A node that follows a table of pgvector, beside pgvector itself: exact, by HNSW, and with filters; both are asked in turns."""
import os
import pathlib
import random
import shutil
import statistics
import struct
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/server/cluster"))
from database import Follower  # noqa: E402

DIM, QUERIES, K = 384, 60, 10
FILTERS = [("none", 100), ("50%", 50), ("10%", 10), ("1%", 1)]


class PackagedDatabase:
    """The PostgreSQL with pgvector that the package pgserver carries."""

    def __init__(self, pgserver, folder):
        self.server = pgserver.get_server(folder, cleanup_mode="stop")
        self.server.psql("ALTER SYSTEM SET wal_level = logical")
        self.server.psql("ALTER SYSTEM SET maintenance_work_mem = '1GB'")
        self.server.psql("ALTER SYSTEM SET shared_buffers = '1GB'")
        self.server.cleanup()
        self.server = pgserver.get_server(folder, cleanup_mode="stop")
        self.conninfo = self.server.get_uri()


def write_rows(cursor, rows):
    """Clusters, as embeddings have them."""
    random_ = random.Random(7)
    centres = [[random_.gauss(0, 1) for _ in range(DIM)] for _ in range(200)]
    with tempfile.TemporaryFile() as file:
        file.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        vector = struct.Struct(f">hiqihh{DIM}fii")
        for i in range(rows):
            centre = random_.choice(centres)
            noise = random_.random() + 0.5
            values = [value + noise * random_.uniform(-1, 1) for value in centre]
            file.write(vector.pack(3, 8, i, 4 + 4 * DIM, DIM, 0, *values, 4, i % 100))
        file.write(struct.pack(">h", -1))
        file.seek(0)
        cursor.copy_expert("COPY items FROM STDIN (FORMAT binary)", file)
    return centres


def literal(vector):
    return "[" + ",".join(repr(value) for value in vector) + "]"


def timed(ask, vectors):
    found, times = [], []
    for vector in vectors:
        begun = time.perf_counter()
        found.append(ask(vector))
        times.append(1e3 * (time.perf_counter() - begun))
    return found, statistics.median(times)


def recall(found, wanted):
    return sum(len(set(a) & set(b)) for a, b in zip(found, wanted)) / sum(len(b) for b in wanted)


def compare(cursor, node, vectors):
    print(f"\n| filter | pgvector, exact | pgvector, HNSW ef_search 40 | ef_search 200 | recall | a Warpwave node | recall |\n|---|--:|--:|--:|--:|--:|--:|")

    def by_sql(bucket):
        def ask(vector):
            cursor.execute("SELECT id FROM items WHERE bucket < %s ORDER BY embedding <-> %s::vector LIMIT %s", (bucket, literal(vector), K))
            return [row[0] for row in cursor.fetchall()]
        return ask

    for name, bucket in FILTERS:
        def by_node(vector, bucket=bucket):
            body = {"query": vector, "limit": K, **({"filter": {"must": [{"key": "bucket", "range": {"lt": bucket}}]}} if bucket < 100 else {})}
            return [point["id"] for point in node.ask("POST", "/collections/items/points/query", body)[1]["result"]["points"]]

        by_node(vectors[0])
        cursor.execute("SET enable_indexscan = off")
        exact, exact_ms = timed(by_sql(bucket), vectors[:15])
        cursor.execute("SET enable_indexscan = on")
        columns = []
        for width in (40, 200):
            cursor.execute(f"SET hnsw.ef_search = {width}")
            found, ms = timed(by_sql(bucket), vectors)
            columns.append((ms, recall(found[:15], exact)))
        own, own_ms = timed(by_node, vectors)
        print(f"| {name} | {exact_ms:.1f} ms | {columns[0][0]:.1f} ms | {columns[1][0]:.1f} ms | {columns[0][1]:.2f}, {columns[1][1]:.2f} | {own_ms:.1f} ms | {recall(own[:15], exact):.2f} |", flush=True)


def bench_pgvector(command, rows):
    try:
        import pgserver
        import psycopg2
    except ImportError as error:
        print(f"\n## pgvector\n\nLeft out: {error}. pip install pgserver psycopg2-binary", flush=True)
        return
    folder = tempfile.mkdtemp(prefix="warpwave-pgvector-")
    os.chmod(folder, 0o755)
    node, database = None, PackagedDatabase(pgserver, folder + "/data")
    try:
        connection = psycopg2.connect(database.conninfo)
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(f"CREATE EXTENSION vector; CREATE TABLE items (id bigint PRIMARY KEY, embedding vector({DIM}), bucket int)")
        centres = write_rows(cursor, rows)
        cursor.execute("ANALYZE items")
        begun = time.perf_counter()
        cursor.execute("CREATE INDEX ON items USING hnsw (embedding vector_l2_ops)")
        built = time.perf_counter() - begun
        cursor.execute("SELECT extversion, current_setting('server_version') FROM pg_extension WHERE extname = 'vector'")
        version, server = cursor.fetchone()
        begun = time.perf_counter()
        node = Follower(command, database, "--table", "public.items", "--vector", "embedding", "--payload", "bucket", "--metric", "l2")
        node.wait(lambda: node.state("items")["state"] == "following", "following", seconds=900)
        print(f"\n## Beside pgvector {version} in PostgreSQL {server}: {rows:,} x {DIM}, k = {K}\n\nHNSW with its default m and ef_construction was built in {built:.0f} s; the node copied the "
              f"table in {time.perf_counter() - begun:.0f} s. Medians of {QUERIES} queries, of 15 for the exact scan.")
        random_ = random.Random(8)
        vectors = [[value + random_.uniform(-1, 1) for value in random_.choice(centres)] for _ in range(QUERIES)]
        compare(cursor, node, vectors)
        connection.close()
    finally:
        if node:
            node.stop()
        database.server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
