#!/usr/bin/env python3
"""Makes a release: packages, wheel, source distribution, source archive, a list of what is in them (SPDX), where they come from (an in-toto
statement with SLSA's provenance), checksums of all of these, and a signature of the checksums.

    scripts/package/release.py BUILD [CHIPS]     into BUILD-release; `make release` calls it
    scripts/package/release.py --check           only compares the versions that the tree states

Refuses a tree with changes that are not committed, versions that disagree, a version whose section in CHANGELOG.md has no date, a commit whose
tag is that of another version, a library that breaks programs without another SONAME (abi.py), and machine code that was not executed for a chip that
README calls emulated. Wheel and packages are of this machine's architecture: run it on each.

RELEASE_KEY names the releaser's SSH key; without it nothing is signed, and the last line says so. To verify, with a file signers that has the
line `releaser@example namespaces="warpwave-release" KEY`, where KEY is the releaser's public key:

    ssh-keygen -Y verify -f signers -I releaser@example -n warpwave-release -s SHA256SUMS-x86_64.sig < SHA256SUMS-x86_64
    sha256sum --check SHA256SUMS-x86_64
"""
import datetime
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Where a version is written, and by which expression it is found there. Each must be found.
VERSIONS = [
    ("include/warpwave/status.h", r'define WW_VERSION_TEXT\s+"([^"]+)"'),
    ("CMakeLists.txt", r"project\(warpwave VERSION (\S+)"),
    ("python/warpwave/_native.py", r'WW_VERSION_TEXT = "([^"]+)"'),
    ("CITATION.cff", r"(?m)^version: (\S+)"),
    ("rust/Cargo.toml", r'(?m)^version = "([^"]+)"'),
    ("rust/warpwave/Cargo.toml", r'warpwave-sys = \{[^}]*version = "([^"]+)"'),
    ("rust/hive-gpu-warpwave/Cargo.toml", r'warpwave = \{[^}]*version = "([^"]+)"'),
    ("rust/warpwave-sys/src/native.rs", r'WW_VERSION_TEXT: &str = "([^"]+)"'),
]
NUMBERS = r"define WW_VERSION_{}\s+(\d+)"

# What the binaries contain or load: the Debian package that has its version here, and its licence.
LIBRARIES = {
    "jansson": ("libjansson-dev", "MIT"),
    "zstd": ("libzstd-dev", "BSD-3-Clause"),
    "xxhash": ("libxxhash-dev", "BSD-2-Clause"),
    "sqlite": ("libsqlite3-dev", "blessing"),
    "pcre2": ("libpcre2-dev", "BSD-3-Clause"),
    "utf8proc": ("libutf8proc-dev", "MIT"),
    "libmicrohttpd": ("libmicrohttpd-dev", "LGPL-2.1-or-later"),
    "zlib": ("zlib1g-dev", "Zlib"),
    "gnutls": ("libgnutls28-dev", "LGPL-2.1-or-later"),
}


class Refused(Exception):
    """The release cannot be made, and the text says why."""


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def agreed_version(root=ROOT):
    """The version, which all files must agree on."""
    found = {}
    for name, pattern in VERSIONS:
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"))
        if not match:
            raise Refused(f"{name} states no version")
        found[name] = match[1]
    header = (root / VERSIONS[0][0]).read_text(encoding="utf-8")
    found["the numbers of include/warpwave/status.h"] = ".".join(re.search(NUMBERS.format(part), header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
    if len(set(found.values())) != 1:
        raise Refused("versions disagree: " + ", ".join(f"{version} in {name}" for name, version in found.items()))
    return found.popitem()[1]


def check_changelog(version, root=ROOT):
    if not re.search(rf"(?m)^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", (root / "CHANGELOG.md").read_text(encoding="utf-8")):
        raise Refused(f"CHANGELOG.md has no line '## [{version}] - YEAR-MONTH-DAY'")


def check_commit(version):
    changed = run("git", "status", "--porcelain")
    if changed:
        raise Refused("the tree has changes that are not committed:\n" + changed)
    tags = [tag for tag in run("git", "tag", "--points-at", "HEAD").split() if tag.startswith("v")]
    if tags and f"v{version}" not in tags:
        raise Refused(f"this commit has the tag {tags[0]}, and the tree is version {version}")


def check_kernels(folder):
    """What is called emulated was executed as it is packed (docs/evidence/codeobjects.tsv)."""
    checked = subprocess.run([ROOT / "scripts/kernels/code_evidence.py", "release", folder], capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        raise Refused(checked.stderr.strip())


def check_interface():
    """Programs that were linked with the release before work with this one, or its SONAME is another."""
    checked = subprocess.run([ROOT / "scripts/package/abi.py"], capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        raise Refused(checked.stderr.strip())
    print(checked.stdout.strip())


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def commit_seconds():
    return run("git", "show", "--no-patch", "--format=%ct", "HEAD")


def library_version(package):
    return run("dpkg-query", "--show", "--showformat=${Version}", package)


def repository(root=ROOT):
    """The repository's address, which CITATION.cff has once it is known."""
    found = re.search(r'(?m)^repository-code: "?(https://[^\s"]+)"?$', (root / "CITATION.cff").read_text(encoding="utf-8"))
    return found[1] if found else "NOASSERTION"


def spdx(version, files):
    """The SPDX 2.3 document: Warpwave, its files with their checksums, and the libraries that it is built with."""
    commit = run("git", "rev-parse", "HEAD")
    date = datetime.datetime.fromtimestamp(int(commit_seconds()), datetime.timezone.utc)

    def package(name, its_version, licence):
        return {"SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": its_version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
                "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION", "supplier": "NOASSERTION"}

    def related(one, how, other):
        return {"spdxElementId": f"SPDXRef-{one}", "relationshipType": how, "relatedSpdxElement": f"SPDXRef-{other}"}

    listed = [{"SPDXID": f"SPDXRef-File-{number}", "fileName": f"./{path.name}", "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
               "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(path.read_bytes()).hexdigest()},
                             {"algorithm": "SHA256", "checksumValue": digest(path)}]} for number, path in enumerate(files)]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"warpwave-{version}",
        "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, commit + ''.join(digest(path) for path in files))}",
        "creationInfo": {"created": date.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: scripts/package/release.py"]},
        "packages": [package("warpwave", version, "Apache-2.0") | {"downloadLocation": repository()}]
                    + [package(name, library_version(debian), licence) for name, (debian, licence) in LIBRARIES.items()],
        "files": listed,
        "relationships": [related("DOCUMENT", "DESCRIBES", "warpwave")] + [related("warpwave", "DEPENDS_ON", name) for name in LIBRARIES]
                         + [related(entry["SPDXID"].removeprefix("SPDXRef-"), "GENERATED_FROM", "warpwave") for entry in listed],
    }


def builder():
    """Who builds: the workflow's own name where there is one, else this machine without its name."""
    if "GITHUB_WORKFLOW_REF" in os.environ:
        return f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{os.environ['GITHUB_WORKFLOW_REF']}"
    return "urn:warpwave:a-machine-of-the-releaser"


def provenance(version, files, make_options):
    """The statement that these files were made from this commit, by which command and with which packages (in-toto v1, SLSA provenance v1)."""
    installed = run("dpkg-query", "--show", "--showformat=${Package}\\t${Version}\\t${Architecture}\\n").splitlines()
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": {"sha256": digest(path)}} for path in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:warpwave:make-release",
                "externalParameters": {"version": version, "command": ["make", "release", *make_options]},
                "internalParameters": {"SOURCE_DATE_EPOCH": commit_seconds(), "architecture": platform.machine()},
                "resolvedDependencies": [{"uri": "git+" + (os.environ.get("GITHUB_REPOSITORY") or "file:."),
                                          "digest": {"gitCommit": run("git", "rev-parse", "HEAD")}}]
                                        + [{"uri": "pkg:deb/{}@{}?arch={}".format(*line.split("\t"))} for line in installed],
            },
            "runDetails": {"builder": {"id": builder()}},
        },
    }


def sign(sums):
    """Signs the checksums with RELEASE_KEY, and verifies the signature; says so if there is no key."""
    key = os.environ.get("RELEASE_KEY")
    if not key:
        return "not signed: RELEASE_KEY names no SSH key"
    signature = sums.with_name(sums.name + ".sig")
    signature.unlink(missing_ok=True)
    run("ssh-keygen", "-Y", "sign", "-f", key, "-n", "warpwave-release", str(sums))
    signers = sums.with_name("signers")
    try:
        signers.write_text(f'releaser namespaces="warpwave-release" {run("ssh-keygen", "-y", "-f", key)}\n', encoding="utf-8")
        with open(sums, "rb") as text:
            subprocess.run(["ssh-keygen", "-Y", "verify", "-f", signers, "-I", "releaser", "-n", "warpwave-release", "-s", signature], stdin=text,
                           capture_output=True, check=True)
    finally:
        signers.unlink(missing_ok=True)
    return f"signed: {signature.name}"


def build(folder, version, make_options):
    """Everything that a release has, in `folder`, and the list of it."""
    # Times inside the files are the commit's, so that both machines make the same source distribution.
    environment = os.environ | {"SOURCE_DATE_EPOCH": commit_seconds()}
    for target in ("package", "wheel"):
        subprocess.run(["make", target, *make_options], cwd=ROOT, check=True, env=environment)
    check_kernels(ROOT / f"{folder.name.removesuffix('-release')}-package" / "kernels")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    base = folder.name.removesuffix("-release")
    for pattern in (f"{base}-package/*.deb", f"{base}-package/*.tar.zst", f"{base}-wheel/dist/*"):
        for path in sorted(ROOT.glob(pattern)):
            shutil.copy2(path, folder)
    run("git", "archive", "--format=tar.gz", f"--prefix=warpwave-{version}/", f"--output={folder / f'warpwave-{version}-source.tar.gz'}", "HEAD")
    files = sorted(folder.iterdir())
    listing = folder / f"warpwave-{version}-{platform.machine()}.spdx.json"
    listing.write_text(json.dumps(spdx(version, files), indent=1) + "\n", encoding="utf-8")
    statement = folder / f"warpwave-{version}-{platform.machine()}.provenance.json"
    statement.write_text(json.dumps(provenance(version, [*files, listing], make_options), indent=1) + "\n", encoding="utf-8")
    sums = folder / f"SHA256SUMS-{platform.machine()}"
    sums.write_text("".join(f"{digest(path)}  {path.name}\n" for path in [*files, listing, statement]), encoding="utf-8")
    return sign(sums)


def main(arguments):
    version = agreed_version()
    if arguments == ["--check"]:
        print(f"release: version {version} everywhere")
        return
    name, chips = arguments if len(arguments) == 2 else (arguments[0], "")
    check_changelog(version)
    check_commit(version)
    check_interface()
    folder = ROOT / f"{name}-release"
    signed = build(folder, version, [f"BUILD={name}"] + ([f"CHIPS={chips}"] if chips else []))
    print(f"release: {version} is in {folder.name}:", *sorted(path.name for path in folder.iterdir()), sep="\n  ")
    print(f"release: {signed}")


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    try:
        main(sys.argv[1:])
    except Refused as refused:
        sys.exit(f"release: {refused}")
    except subprocess.CalledProcessError as failed:
        sys.exit(f"release: {' '.join(map(str, failed.cmd))} failed{': ' + failed.stderr.strip() if failed.stderr else ''}")
