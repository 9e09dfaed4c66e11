#!/usr/bin/env python3
"""A database, three nodes that follow it, and what happens when one of them and the database are killed:
   scripts/demo/demo-cluster.py WARPWAVE
Starts a PostgreSQL of its own and three servers on this machine, which end with it, in less than a minute. DEVICE=cuda:0 chooses where the nodes search.
Exits with 77 where PostgreSQL is not installed, and with 1 if an answer was not the same."""
import hashlib
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/server/cluster"))
from database import Database, Follower, find_postgres  # noqa: E402

ROWS, DIM, QUERIES = 20000, 64, 25
FILL = f"""SELECT setseed(0.5);
CREATE TABLE docs (id bigint PRIMARY KEY, embedding float4[], title text, year int);
INSERT INTO docs SELECT i, (SELECT array_agg((random() - 0.5)::float4) FROM generate_series(1, {DIM}) WHERE i > 0), 'document ' || i, 1990 + i % 30
FROM generate_series(1, {ROWS}) AS i"""
BEGUN = time.monotonic()


def say(text):
    print(f"{time.monotonic() - BEGUN:5.1f} s  {text}", flush=True)


def queries():
    for i in range(QUERIES):
        vector = [((i * 37 + j * 101) % 211 - 105) / 105 for j in range(DIM)]
        yield {"query": vector, "limit": 10, "with_payload": True, "filter": {"must": [{"key": "year", "range": {"gte": 1990 + i % 5}}]}}


def answers(node, lsn):
    """The answers of a node to all queries: every id, the bits of every score, every payload, in order."""
    digest = hashlib.sha256()
    for query in queries():
        status, answer, _ = node.ask("POST", "/collections/docs/points/query", query, **{"x-warpwave-min-lsn": lsn})
        assert status == 200, answer
        digest.update(json.dumps(answer["result"]).encode())
    return digest.hexdigest()[:16]


def compare(nodes, lsn, expected=None):
    """Asks each node; all must say the same, and `expected` if that is given."""
    got = {name: answers(node, lsn) for name, node in nodes.items()}
    for name, digest in got.items():
        say(f"    {name}: {QUERIES} searches, {digest}")
    wanted = expected or next(iter(got.values()))
    if set(got.values()) != {wanted}:
        say("    THE ANSWERS ARE NOT THE SAME")
        sys.exit(1)
    say(f"    the same to the bit, with {', '.join(nodes)}")
    return wanted


def play(command, database, nodes):
    say(f"a PostgreSQL at port {database.port}; a table with {ROWS:,} rows of {DIM} numbers")
    database.sql(FILL)
    options = ["--table", "public.docs", "--vector", "embedding", "--payload", "title,year", "--verify", "10"]
    for name in ("node 1", "node 2", "node 3"):
        nodes[name] = Follower(command, database, *options, advertise=True, device=os.environ.get("DEVICE") or "cpu", timeout=60)
    for node in nodes.values():
        node.wait(lambda node=node: node.state()["state"] == "following", "following")
        node.wait(lambda node=node: sum(one["alive"] for one in node.ask("GET", "/cluster")[1]["result"]["nodes"]) == 3, "seeing the others")
    say("three nodes have copied it and follow it")
    first = compare(nodes, database.lsn())
    say("node 2 is killed (kill -9)")
    nodes["node 2"].kill()
    compare({name: node for name, node in nodes.items() if name != "node 2"}, database.lsn(), first)
    say("meanwhile the table changes: 1,000 rows updated, 500 deleted, 500 new; and node 2 starts again")
    database.sql(f"UPDATE docs SET embedding = array(SELECT -x FROM unnest(embedding) AS x) WHERE id % 20 = 3; DELETE FROM docs WHERE id % 40 = 7; "
                 f"INSERT INTO docs SELECT {ROWS} + i, embedding, 'copy of ' || title, year FROM (SELECT row_number() OVER (ORDER BY id) AS i, * FROM docs LIMIT 500) AS first_ones")
    nodes["node 2"].start()
    nodes["node 2"].wait(lambda: nodes["node 2"].state()["state"] == "following", "following again")
    lsn = database.lsn()
    second = compare(nodes, lsn)
    assert second != first, "the change changed nothing"
    assert nodes["node 2"].state()["copies"] == 0, "node 2 copied the table instead of going on where it was"
    say("the database is killed; the nodes answer from what they have")
    database.stop()
    compare(nodes, lsn, second)
    say("the database starts again, and the change is undone")
    database.start()
    for node in nodes.values():
        node.wait(lambda node=node: node.state()["state"] == "following", "following again")
    database.sql("UPDATE docs SET embedding = array(SELECT -x FROM unnest(embedding) AS x) WHERE id % 20 = 3")
    compare(nodes, database.lsn())


def main():
    binaries = find_postgres()
    if not binaries:
        print("PostgreSQL is not installed: sudo apt install postgresql")
        return 77
    nodes, database = {}, Database(binaries)
    try:
        play(sys.argv[1], database, nodes)
        say("done. docs/guide/cluster.md has the same with your own tables")
    finally:
        for node in nodes.values():
            if node.process.poll() is None:
                node.stop()
        database.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
