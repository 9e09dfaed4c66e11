#!/usr/bin/env python3
"""The extension from Python: the same statements through the standard sqlite3 module or through apsw, which brings a SQLite of its own.

    check.py sqlite3|apsw EXTENSION FOLDER
"""
import array
import json
import os
import sys

ROWS = 300


class Standard:
    """sqlite3 of the standard library."""

    def __init__(self, path, extension):
        import sqlite3
        self.errors = sqlite3.Error
        self.version = sqlite3.sqlite_version
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.enable_load_extension(True)
        self.db.load_extension(extension)

    def ask(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def close(self):
        self.db.close()


class Apsw:
    """apsw, whose SQLite is inside its module."""

    def __init__(self, path, extension):
        import apsw
        self.errors = apsw.Error
        self.version = apsw.sqlite_lib_version()
        self.db = apsw.Connection(path)
        self.db.enable_load_extension(True)
        self.db.load_extension(extension)

    def ask(self, sql, *values):
        return list(self.db.execute(sql, values))

    def close(self):
        self.db.close()


def vector(i):
    return array.array("f", [i % 17, i % 5 - 2, i / 100]).tobytes()


def fails(db, sql, why, *values):
    try:
        db.ask(sql, *values)
    except db.errors as error:
        assert why in str(error), f"{sql}: {error}"
        return
    raise AssertionError(f"{sql}: does not fail")


def fill(db):
    db.ask("CREATE VIRTUAL TABLE docs USING warpwave(dim=3, metric=l2, device=cpu)")
    db.ask("BEGIN")
    for i in range(ROWS):
        db.ask("INSERT INTO docs(id, vector, payload) VALUES (?, ?, ?)", f"d{i}", vector(i), json.dumps({"lang": "en" if i % 3 else "de", "i": i}))
    db.ask("COMMIT")


def check_search(db):
    # Beside a scan with the function, whose scores are those of a search.
    query = vector(33)
    nearest = db.ask("SELECT id, distance FROM docs WHERE vector MATCH ? AND k = 10", query)
    scanned = db.ask("SELECT id, ww_l2(vector, ?1) AS d FROM docs ORDER BY d, rowid LIMIT 10", query)
    assert nearest == scanned, (nearest, scanned)
    assert db.ask("SELECT id, distance FROM docs WHERE vector MATCH ? ORDER BY distance LIMIT 10", query) == scanned
    filtered = db.ask("SELECT id, distance FROM docs WHERE vector MATCH ? AND k = 10 AND filter = ?", query, "payload->>'$.lang' = 'de'")
    expected = db.ask("SELECT id, ww_l2(vector, ?1) AS d FROM docs WHERE payload->>'$.lang' = 'de' ORDER BY d, rowid LIMIT 10", query)
    assert filtered == expected, (filtered, expected)
    pushed = db.ask("SELECT id, distance FROM docs WHERE vector MATCH ?1 AND k = 10 AND rowid IN "
                    "(SELECT handle FROM docs_rows WHERE payload->>'$.lang' = ?2)", query, "de")
    assert pushed == expected, (pushed, expected)
    assert db.ask("SELECT vector FROM docs WHERE id = 'd33'") == [(query,)]
    assert db.ask("SELECT count(*) FROM docs WHERE vector MATCH ? AND radius = 1.0", query)[0][0] == \
        db.ask("SELECT count(*) FROM docs WHERE ww_l2(vector, ?) <= 1.0", query)[0][0]


def check_transactions(db, other):
    db.ask("BEGIN")
    db.ask("INSERT INTO docs(id, vector) VALUES ('pending', ?)", vector(0))
    db.ask("DELETE FROM docs WHERE id = 'd0'")
    first = "SELECT id FROM docs WHERE vector MATCH ? AND k = 1"
    assert db.ask(first, vector(0)) == [("pending",)]
    assert other.ask(first, vector(0)) == [("d0",)]
    db.ask("ROLLBACK")
    assert db.ask(first, vector(0)) == [("d0",)]
    db.ask("INSERT OR REPLACE INTO docs(id, vector) VALUES ('d0', '[100, 100, 100]')")
    assert other.ask(first, "[100,100,100]") == [("d0",)]
    assert db.ask("SELECT rowid FROM docs WHERE id = 'd0'") == [(1,)]


def check_refusals(db):
    fails(db, "INSERT INTO docs(id, vector) VALUES ('x', ?)", "a blob of 2 bytes", b"ab")
    fails(db, "SELECT id FROM docs WHERE vector MATCH ? AND k = 1 AND filter = ?", "semicolon", vector(1), "1; DROP TABLE docs_rows")
    fails(db, "INSERT INTO docs(id, vector) VALUES ('d1', ?)", "already exists", vector(1))
    assert db.ask("SELECT count(*) FROM docs") == [(ROWS,)]


def check_integrity(db):
    assert db.ask("PRAGMA integrity_check") == [("ok",)]
    if tuple(int(part) for part in db.version.split(".")[:2]) < (3, 44):
        return  # tables are not asked there
    db.ask("BEGIN")
    db.ask("DELETE FROM docs_vectors WHERE place = 5")
    said = db.ask("PRAGMA integrity_check")[0][0]
    assert "rows without a vector" in said, said
    db.ask("ROLLBACK")


def main():
    kind, extension, folder = sys.argv[1:]
    connect = {"sqlite3": Standard, "apsw": Apsw}[kind]
    path = os.path.join(folder, f"{kind}.db")
    if os.path.exists(path):
        os.remove(path)
    db = connect(path, extension)
    other = connect(path, extension)
    fill(db)
    check_search(db)
    check_transactions(db, other)
    check_refusals(db)
    check_integrity(db)
    other.close()
    db.close()
    db = connect(path, extension)
    assert db.ask("SELECT id FROM docs WHERE vector MATCH '[100,100,100]' AND k = 1") == [("d0",)]
    if kind == "apsw":  # the system's SQLite is another one in this process, and is refused
        try:
            Standard(":memory:", extension)
        except Exception as error:  # whatever its module raises
            assert "another SQLite" in str(error), error
        else:
            raise AssertionError("two SQLites loaded the extension in one process")
    db.close()
    print(f"{kind}: SQLite {db.version}: ok")


main()
