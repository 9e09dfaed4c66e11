"""Servers as processes, and requests to them, for the scripts in this folder."""
import http.client
import json
import re
import signal
import subprocess


class Served:
    """`warpwave serve` at a port of its own."""

    def __init__(self, command, store, *options):
        self.process = subprocess.Popen([str(command), "serve", str(store), "--listen", "127.0.0.1:0", *map(str, options)], stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.search(r"listening at http://127\.0\.0\.1:(\d+)", line)
        if not found:
            raise SystemExit(f"the server said: {line}{self.process.stderr.read()}")
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=120)


def ask(port, method, path, body=None):
    """The JSON of an answer, over a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, None if body is None else json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status >= 300:
        raise SystemExit(f"{method} {path}: {answer.status}: {content[:300]}")
    return json.loads(content or "null")
