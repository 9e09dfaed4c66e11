"""A PostgreSQL of the test's own, and `warpwave serve` that follows it. Both listen on 127.0.0.1 and end with the test."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request


def find_postgres():
    """The folder of PostgreSQL's programs; None if it is not installed."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3])) if pathlib.Path("/usr/lib/postgresql").exists() else []
    initdb = str(found[-1]) if found else shutil.which("initdb")
    return pathlib.Path(initdb).parent if initdb and shutil.which("psql") else None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Database:
    """PostgreSQL refuses to run as root, so root hands it to the account that its package made."""

    def __init__(self, binaries):
        self.binaries, self.port = binaries, free_port()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="warpwave-pg-"))
        self.conninfo = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        self.account = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if self.account:
            shutil.chown(self.folder, "postgres", "postgres")
        self.run("initdb", "-D", str(self.folder / "data"), "-A", "trust", "-U", "postgres", "--no-sync", "--locale=C.UTF-8", "-E", "UTF8")
        settings = f"""wal_level=logical
port={self.port}
listen_addresses='127.0.0.1'
unix_socket_directories=''
fsync=off
max_wal_senders=400
max_replication_slots=400
wal_sender_timeout=20s
"""
        subprocess.run(self.account + ["tee", "-a", str(self.folder / "data/postgresql.conf")], input=settings, text=True, check=True, stdout=subprocess.DEVNULL)
        self.start()

    def run(self, program, *arguments):
        subprocess.run(self.account + [str(self.binaries / program), *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")

    def start(self):
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-l", str(self.folder / "log"), "-w", "start")

    def stop(self, mode="immediate"):
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-w", "stop")

    def sql(self, text):
        """Runs statements, each on a line of its own in one session, and returns what the last one printed."""
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", self.conninfo], input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def lsn(self):
        return self.sql("SELECT pg_current_wal_lsn()")

    def remove(self):
        try:
            self.stop()
        except subprocess.CalledProcessError:
            pass
        shutil.rmtree(self.folder, ignore_errors=True)


class Follower:
    def __init__(self, command, database, *options, store=None, advertise=False, headers=None, device="cpu", timeout=20, mode="--follow", conninfo=None):
        self.command, self.database, self.options, self.advertise, self.device, self.timeout = command, database, options, advertise, device, timeout
        self.headers, self.mode, self.conninfo = headers or {}, mode, conninfo or database.conninfo
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="warpwave-follow-"))
        self.store = store or self.folder / "cache.db"
        self.process = None
        self.start()

    def start(self):
        self.port = free_port()
        url = ["--advertise", f"http://127.0.0.1:{self.port}"] if self.advertise else []
        self.process = subprocess.Popen([self.command, "serve", str(self.store), "--device", self.device, "--listen", f"127.0.0.1:{self.port}",
                                         self.mode, self.conninfo, "--timeout", str(self.timeout), *url, *self.options], stderr=subprocess.PIPE)
        self.process.stderr.readline()  # "listening at"

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stderr.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=30)
        self.process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return code

    def ask(self, method, path, body=None, **headers):
        """The status, the JSON of the answer (or its text) and its headers."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(), headers={"content-type": "application/json", **self.headers, **headers})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, text, given = answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            status, text, given = error.code, error.read(), error.headers
        try:
            return status, json.loads(text), given
        except ValueError:
            return status, text.decode(), given

    def state(self, collection="docs"):
        status, answer, _ = self.ask("GET", f"/collections/{collection}/follow")
        assert status == 200, answer
        return answer["result"]

    def wait(self, condition, what, seconds=120):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"{what} did not happen in {seconds} s: {self.state()}"
            time.sleep(0.05)

    def points(self, lsn, collection="docs"):
        """All points, by id, as of `lsn` at least."""
        status, answer, headers = self.ask("POST", f"/collections/{collection}/points/scroll", {"limit": 100000, "with_payload": True, "with_vector": True},
                                           **{"x-warpwave-min-lsn": lsn})
        assert status == 200, answer
        assert headers["x-warpwave-lsn"]
        return {point["id"]: point for point in answer["result"]["points"]}
