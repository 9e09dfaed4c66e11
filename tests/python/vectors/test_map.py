"""Maps of collections, in memory and in stores."""
import os
import struct
import subprocess
import xml.dom.minidom
import zlib

import numpy as np
import pytest

import warpwave


@pytest.fixture
def rows():
    random = np.random.default_rng(3)
    return (random.normal(size=(5, 16))[random.integers(0, 5, 200)] * 4 + random.normal(size=(200, 16))).astype(np.float32)


def test_a_map_has_a_point_for_each_row(rows):
    c = warpwave.Collection(16, metric="l2", device="cpu")
    c.add(rows, ids=[f"row{i}" for i in range(200)])
    told = []
    m = c.map(seed=5, steps=100, progress=lambda done, total: told.append((done, total)))
    assert m.points.shape == (200, 2) and m.points.dtype == np.float32 and np.isfinite(m.points).all()
    assert m.ids[7] == "row7" and m.handles.tolist() == list(range(200)) and len(m) == 200
    assert (m.origin, m.seed, m.steps, m.neighbours, m.kept) == ("made", 5, 100, 15, True) and told
    assert np.asarray(m) is m.points and np.asarray(m, dtype=np.float64).dtype == np.float64
    again = c.map()
    assert again.origin == "kept" and (again.points == m.points).all()
    c.add(rows[:1] + 0.01, ids=["new"])
    c.remove("row3")
    grown = c.map()
    assert grown.origin == "grown" and grown.rows_placed == 1 and grown.ids[-1] == "new" and "row3" not in grown.ids
    assert (grown.points[:3] == m.points[:3]).all() and (grown.points[3:-1] == m.points[4:]).all()
    remade = c.map(remake=True)
    assert remade.origin == "made" and remade.rows_placed == 0 and not (remade.points[:3] == m.points[:3]).all()
    c.drop_map()
    assert c.map(seed=5, steps=100).origin == "made"


def test_a_store_keeps_its_map(rows, tmp_path):
    with warpwave.Store(tmp_path / "maps.db", device="cpu") as store:
        c = store.create("docs", 16, metric="l2")
        c.add(rows)
        made = c.map(steps=50)
    with warpwave.Store(tmp_path / "maps.db", device="cpu") as store:
        kept = store["docs"].map()
        assert kept.origin == "kept" and (kept.points == made.points).all()
    memory = warpwave.Collection(16, metric="l2", device="cpu")
    memory.add(rows)
    assert (memory.map(steps=50).points == made.points).all()


def test_a_map_of_nothing_and_what_is_refused():
    c = warpwave.Collection(4, device="cpu")
    assert c.map().points.shape == (0, 2)
    for wrong in ({"neighbours": 1}, {"neighbours": 1000}, {"steps": -1}, {"seed": -2}):
        with pytest.raises(warpwave.OutOfRange):
            c.map(**wrong)
    c.add(np.eye(4))
    with pytest.raises(warpwave.InvalidArgument):
        c.map(nprobe=1)
    with pytest.raises(KeyboardInterrupt):
        def stop(done, total):
            raise KeyboardInterrupt
        c.map(progress=stop)


def unpacked(png):
    """The pixels of a PNG with a palette, as numbers of colours; checks every chunk."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        chunks[name] = png[at + 8:at + 8 + length]
        assert zlib.crc32(name + chunks[name]) == struct.unpack(">I", png[at + 8 + length:at + 12 + length])[0]
        at += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert (lines[:, 0] == 0).all() and lines.max() < len(chunks[b"PLTE"]) // 3
    return lines[:, 1:]


def test_pictures_show_the_points(rows, tmp_path):
    with warpwave.Store(tmp_path / "maps.db", device="cpu") as store:
        c = store.create("docs", 16, metric="l2")
        c.add(rows, payloads=[{"half": "first" if i < 150 else "second", "n": i} for i in range(200)])
        points = c.map(steps=50).points
    command = [os.environ["WARPWAVE_COMMAND"], "store", "map", str(tmp_path / "maps.db"), "docs", "--device", "cpu", "--out"]
    subprocess.run([*command, str(tmp_path / "m.png"), "--color", "half"], check=True)
    pixels = unpacked((tmp_path / "m.png").read_bytes())
    assert set(np.unique(pixels)) == {1, 2, 12} and (pixels == 1).sum() > (pixels == 2).sum()
    scale = (1600 - 48) / (points.max(0) - points.min(0)).max()
    middle = (points.max(0) + points.min(0)) / 2
    for i in (0, 77, 199):
        x, y = 800 + (points[i, 0] - middle[0]) * scale, 800 - (points[i, 1] - middle[1]) * scale
        assert pixels[int(y), int(x)] < 12
    subprocess.run([*command, str(tmp_path / "m.svg"), "--color", "n"], check=True)
    svg = (tmp_path / "m.svg").read_text()
    assert svg.count("M") == 200 and "0 to 18.09" in svg
    xml.dom.minidom.parseString(svg)
