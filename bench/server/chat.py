#!/usr/bin/env python3
"""Chat with several clients beside one: tokens a second of the server, for 1, 2, 4, 8 and 16 clients.

    python3 bench/server/chat.py BUILD MODEL.gguf [--device cuda:0] [--tokens 256] [--clients 1,2,4,8,16] [--seconds 10] [--rounds 3] [--temperature 0.8]

Each client sends conversations of its own, one after the other, until the seconds are over. Tokens are counted as the answers say (`usage`), and time is
taken until the last answer. Needs Python only. Prints markdown; 8 clients should have 4 times the rate of one.
"""
import argparse
import itertools
import pathlib
import statistics
import tempfile
import threading
import time

from process import Served, ask


def conversation(client, number, tokens, temperature):
    words = ["rivers", "engines", "volcanoes", "libraries", "whales", "bridges", "violins", "glaciers"]
    return {"model": "m", "max_tokens": tokens, "temperature": temperature, "seed": 1000 * client + number,
            "messages": [{"role": "user", "content": f"Tell a long story about {words[client % len(words)]} and the number {number}."}]}


def run(port, clients, tokens, seconds, temperature):
    """Tokens a second of all clients together."""
    made, lock, begun = [0], threading.Lock(), time.perf_counter()

    def chat(client):
        for number in itertools.takewhile(lambda _: time.perf_counter() < begun + seconds, itertools.count()):
            count = ask(port, "POST", "/v1/chat/completions", conversation(client, number, tokens, temperature))["usage"]["completion_tokens"]
            with lock:
                made[0] += count

    threads = [threading.Thread(target=chat, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made[0] / (time.perf_counter() - begun)


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("build", type=pathlib.Path)
    reader.add_argument("model", type=pathlib.Path)
    reader.add_argument("--device", default="cuda:0")
    reader.add_argument("--tokens", type=int, default=256)
    reader.add_argument("--clients", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 4, 8, 16])
    reader.add_argument("--seconds", type=float, default=10)
    reader.add_argument("--rounds", type=int, default=3)
    reader.add_argument("--temperature", type=float, default=0.8)
    given = reader.parse_args()
    rates = {clients: [] for clients in given.clients}
    with tempfile.TemporaryDirectory() as folder, Served(given.build / "warpwave", pathlib.Path(folder) / "chat.db", "--device", given.device, "--model",
                                                         f"m={given.model}") as server:
        run(server.port, max(given.clients), 16, 0.5, given.temperature)  # warm
        for _ in range(given.rounds):
            for clients in given.clients:
                rates[clients].append(run(server.port, clients, given.tokens, given.seconds, given.temperature))
    print(f"Chat with {given.model.name} on {given.device}, at most {given.tokens} tokens an answer, temperature {given.temperature}, medians of {given.rounds} rounds\n")
    print("| clients | tokens a second | times one client |\n|--:|--:|--:|")
    for clients in given.clients:
        middle = statistics.median(rates[clients])
        print(f"| {clients} | {middle:,.0f} | {middle / statistics.median(rates[given.clients[0]]):.2f} |")


main()
