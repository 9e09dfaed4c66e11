"""`warpwave serve` as a process for the checks in this folder."""
import http.client
import json
import os
import re
import signal
import subprocess


class Served:
    """A server at a port of its own: `with Served(command, store, options) as s`. It must end with code 0 after SIGTERM."""

    def __init__(self, command, store, *options, environment=None):
        self.process = subprocess.Popen([command, "serve", str(store), "--device", "cpu", "--listen", "127.0.0.1:0", *options], stderr=subprocess.PIPE,
                                        text=True, env=environment)
        line = self.process.stderr.readline()
        found = re.search(r"listening at (https?)://127\.0\.0\.1:(\d+)", line)
        assert found, f"the server said: {line}{self.process.stderr.read()}"
        self.port = int(found.group(2))

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=120)
        said = self.process.stderr.read()
        self.process.stderr.close()
        assert kind or code == 0, f"exit code {code}: {said}"

    def ask(self, method, path, body=None, connection=None):
        """The status and the answer."""
        used = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        used.request(method, path, None if body is None else json.dumps(body), {"content-type": "application/json"})
        answer = used.getresponse()
        content = answer.read()
        if not connection:
            used.close()
        return answer.status, json.loads(content) if content and answer.getheader("content-type") == "application/json" else content

    def cpu_seconds(self):
        """Processor time of all threads so far."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as status:
            fields = status.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, line="VmRSS"):
        """A line of /proc/PID/status in bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return 1024 * int(next(text for text in status if text.startswith(line + ":")).split()[1])
