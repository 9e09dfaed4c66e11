#!/usr/bin/env python3
"""Writes the documents as a site of static HTML, with search: scripts/docs/make-site.py FOLDER COMMAND REFERENCE. `make docs` calls it.

The pages are README.md, docs/ and what they lead to: other pages, pictures, and files of the tree. Three are made here: the C API from the headers, the
Python API from the sources, and the HTTP API from /openapi.json of COMMAND, a `warpwave` that is started for it. Nothing is fetched, and the site
needs no server. REFERENCE is docs/reference/command.md with its lists of options. A link that leads nowhere is an error.

It needs the package markdown-it-py; --needs only says whether it is there.
"""
import ast
import html
import html.parser
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

try:
    from markdown_it import MarkdownIt
except ImportError:
    MarkdownIt = None

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PICTURES = (".png", ".svg")
MADE = {"docs/reference/api.md": "C API", "docs/reference/python.md": "Python API", "docs/reference/http.md": "HTTP API"}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="stylesheet" href="{up}site.css"></head>
<body data-up="{up}"><nav><a class="home" href="{up}index.html">Warpwave</a>
<input id="search" type="search" placeholder="Search" aria-label="Search"><ol id="found"></ol>
{nav}</nav>
<main>
{body}
</main><script src="{up}search-index.js" defer></script><script src="{up}search.js" defer></script></body></html>
"""


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


# ---- the pages that are made ---------------------------------------------------------------------------------------------------


def c_api():
    spec = importlib.util.spec_from_file_location("api_reference", ROOT / "scripts/api-reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.linked_from(module.reference(), ROOT / "docs/reference")


def literally(text):
    return re.sub(r"([\\*_<\[])", r"\\\1", text)


def docstring(node):
    """The Markdown of a docstring: its text outside code literally, examples as code."""
    out = []
    for part in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
        lead, example, rest = part.partition(">>> ")
        out += ["".join(piece if odd else literally(piece) for odd, piece in code_and_text(lead)).strip(), ""]
        if example:
            out += ["```python", example + rest, "```", ""]
    return out


def code_and_text(text):
    return ((number % 2, piece) for number, piece in enumerate(re.split(r"(`[^`\n]+`)", text)))


def signature(name, function, of_class):
    arguments = ast.parse(ast.unparse(function)).body[0].args
    if of_class and not any(getattr(one, "id", "") == "staticmethod" for one in function.decorator_list):
        (arguments.posonlyargs or arguments.args)[:1] = []
    result = f" -> {ast.unparse(function.returns)}" if function.returns and function.name != "__init__" else ""
    return f"{name}({ast.unparse(arguments)}){result}"


def is_property(function):
    return any(getattr(one, "id", "") in ("property", "cached_property") for one in function.decorator_list)


def described_class(name, node):
    methods = {one.name: one for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
    fields = [ast.unparse(one) for one in node.body if isinstance(one, ast.AnnAssign) and not ast.unparse(one).startswith("_")]
    out = [f"### {name}", "", "```python", signature(name, methods["__init__"], True) if "__init__" in methods else f"class {name}", *fields, "```", ""]
    out += docstring(node)
    for method in methods.values():
        if not method.name.startswith("_") and ast.get_docstring(method):
            shown = method.name if is_property(method) else signature(method.name, method, True)
            out += [f"#### {name}.{method.name}", "", "```python", shown, "```", "", *docstring(method)]
    return out


def python_api():
    """Every name that the package exports, by the module that defines it."""
    package = ROOT / "python/warpwave"
    out = ["# Python API", "", "*For Python programmers: made from the sources. [From Python](../guide/from-python.md) explains how to use it.*", ""]
    for statement in ast.parse(text_of("python/warpwave/__init__.py")).body:
        if not isinstance(statement, ast.ImportFrom) or not statement.module or statement.module == "__future__":
            continue
        module = ast.parse((package / f"{statement.module}.py").read_text(encoding="utf-8"))
        nodes = {one.name: one for one in module.body if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
        assigned = {target.id: one.value for one in module.body if isinstance(one, ast.Assign) for target in one.targets if isinstance(target, ast.Name)}
        names = [one.name for one in statement.names if not one.asname]
        if names == ["*"]:
            names = ast.literal_eval(assigned["__all__"])
        out += [f"## warpwave.{statement.module.lstrip('_')}", "", *docstring(module)]
        plain = [name for name in names if name not in nodes]
        for name in (one for one in names if one in nodes):
            node = nodes[name]
            out += described_class(name, node) if isinstance(node, ast.ClassDef) else [
                f"### {name}", "", "```python", signature(name, node, False), "```", "", *docstring(node)]
        if plain:
            out += ["Also: " + ", ".join(f"`{name}`" for name in plain) + ".", ""]
    return "\n".join(out)


def description_of(command):
    """/openapi.json of a server that runs for a moment."""
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen([command, "serve", f"{folder}/docs.db", "--listen", "127.0.0.1:0", "--device", "cpu"], stderr=subprocess.PIPE, text=True) as server:
            said = ""
            for line in server.stderr:
                said += line
                address = re.search(r"http://[\w.:]+", line)
                if address:
                    with urllib.request.urlopen(address.group() + "/openapi.json", timeout=60) as answer:
                        found = json.load(answer)
                    server.terminate()
                    server.communicate()
                    return found
    sys.exit(f"site: {command} serve gives no /openapi.json:\n{said}")


def type_of(schema):
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    return "array of " + type_of(schema["items"]) if "items" in schema else schema.get("type", "any")


def http_api(description):
    out = ["# HTTP API", "", "*For people who call the server: made from its `/openapi.json`. [Server](../guide/server.md) explains it.*", ""]
    for path, methods in description["paths"].items():
        for method, about in methods.items():
            out += [f"## {method.upper()} {literally(path)}", "", literally(about["summary"].rstrip("?")) + ("?" if about["summary"].endswith("?") else "."), ""]
            fields = about.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {}).get("properties", {})
            if fields:
                out += ["| field | |", "|---|---|"]
                out += [f"| `{name}` | {type_of(schema)}{'. ' + literally(schema['description']) if 'description' in schema else ''} |"
                        for name, schema in fields.items()]
                out.append("")
            out += ["Answer: " + literally(about["responses"]["200"]["description"]), ""]
    first = next(iter(next(iter(description["paths"].values())).values()))
    out += ["## Other answers", "", "| status | |", "|---|---|"]
    out += [f"| {status} | {literally(one['description'])} |" for status, one in first["responses"].items() if status != "200"]
    return "\n".join(out) + "\n"


# ---- Markdown to HTML ----------------------------------------------------------------------------------------------------------


def address(path):
    """Where a file of the tree is on the site."""
    if path == "README.md":
        return "index.html"
    if path.endswith(".md"):
        return path[:-3] + ".html"
    if (ROOT / path).is_dir():
        return path.rstrip("/") + "/index.html"
    return path if path.endswith(PICTURES) else path + ".html"


def relative(target, page):
    return os.path.relpath(target, os.path.dirname(page) or ".")


def spelled(heading):
    """The anchor of a heading as GitHub spells it, which the documents use."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class Site:
    def __init__(self, folder, made):
        self.folder, self.made = folder, made
        self.markdown = MarkdownIt("commonmark").enable("table")
        self.sections, self.queue, self.written = [], ["README.md", "docs/README.md", *made], set()
        self.nav = self.navigation()

    def navigation(self):
        """(title, [(name, path)]) from the tables of docs/README.md, and the made pages in the reference."""
        groups = []
        for line in text_of("docs/README.md").split("\n"):
            head, row = re.match(r"\| (\w+): ", line), re.match(r"\| \[([^]]+)\]\(([^)#]+\.md)\)", line)
            if head:
                groups.append((head.group(1), []))
            elif row and groups:
                groups[-1][1].append((row.group(1), os.path.normpath(f"docs/{row.group(2)}")))
        for title, pages in groups:
            if title == "Reference":
                pages += [(name, path) for path, name in MADE.items() if path in self.made]
        return groups

    def navigation_html(self, page):
        out = []
        for title, pages in self.nav:
            out.append(f"<details{' open' if page in [path for _, path in pages] else ''}><summary>{title}</summary><ul>")
            out += [f'<li><a{" class=here" if path == page else ""} href="{relative(address(path), address(page))}">{html.escape(name)}</a></li>'
                    for name, path in pages]
            out.append("</ul></details>")
        return "\n".join(out)

    def linked(self, href, page):
        """The href on the site of one in the tree; what it leads to joins the site."""
        target, _, anchor = href.partition("#")
        if re.match(r"[a-z]+:", href) or not target:
            return href
        path = os.path.normpath(os.path.join(os.path.dirname(page), urllib.parse.unquote(target)))
        if path not in self.made and not (ROOT / path).exists():
            return href  # the check of links names it
        self.queue.append(path)
        return relative(address(path), address(page)) + ("#" + anchor if anchor else "")

    def rendered(self, text, page):
        """(HTML, title) of Markdown; its sections join the index of the search."""
        tokens = self.markdown.parse(text)
        title, heading, anchor, words, used = "", "", "", [], {}
        for number, token in enumerate(tokens):
            if token.type == "heading_open":
                self.index(page, title, heading, anchor, words)
                heading, words = "".join(one.content for one in tokens[number + 1].children if one.type in ("text", "code_inline")), []
                title = title or heading
                anchor = spelled(heading)
                used[anchor] = used.get(anchor, -1) + 1
                anchor += f"-{used[anchor]}" if used[anchor] else ""
                token.attrSet("id", anchor)
            for one in token.children or []:
                for name in ("href", "src"):
                    if name in one.attrs:
                        one.attrs[name] = self.linked(one.attrs[name], page)
                if one.type in ("text", "code_inline"):
                    words.append(one.content)
            if token.type in ("fence", "code_block"):
                words.append(token.content)
        self.index(page, title, heading, anchor, words)
        return self.markdown.renderer.render(tokens, self.markdown.options, {}), title

    def index(self, page, title, heading, anchor, words):
        if heading:
            self.sections.append({"a": address(page) + "#" + anchor, "t": title, "h": heading, "x": " ".join(" ".join(words).split())})

    def body(self, path):
        if path in self.made or path.endswith(".md"):
            return self.rendered(self.made.get(path) or text_of(path), path)
        if (ROOT / path).is_dir():
            names = sorted(one.name for one in (ROOT / path).iterdir() if not one.name.startswith((".", "__")))
            listed = "".join(f'<li><a href="{relative(self.joined(f"{path}/{name}"), address(path))}">{name}</a></li>' for name in names)
            return f"<h1>{path}</h1><ul>{listed}</ul>", path
        return f"<h1>{path}</h1><pre>{html.escape((ROOT / path).read_text(encoding='utf-8', errors='replace'))}</pre>", path

    def joined(self, path):
        self.queue.append(path)
        return address(path)

    def write(self):
        while self.queue:
            path = self.queue.pop()
            place = self.folder / address(path)
            if path in self.written:
                continue
            self.written.add(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.endswith(PICTURES):
                shutil.copy(ROOT / path, place)
                continue
            body, title = self.body(path)
            page = PAGE.format(title=html.escape(title), up="../" * address(path).count("/"), nav=self.navigation_html(path), body=body)
            place.write_text(page, encoding="utf-8")
        for name in ("site.css", "search.js"):
            shutil.copy(HERE / name, self.folder / name)
        (self.folder / "search-index.js").write_text(f"const SECTIONS = {json.dumps(self.sections, ensure_ascii=False)};\n", encoding="utf-8")


# ---- the check of links --------------------------------------------------------------------------------------------------------


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.targets = set(), []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src"):
                self.targets.append(value)


def dead_links(folder):
    """PAGE: TARGET for each link of the site's pages that leads to no file of it or to no place there."""
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        pages[path] = Links()
        pages[path].feed(path.read_text(encoding="utf-8"))
    for path, links in pages.items():
        for target in links.targets:
            place, _, anchor = urllib.parse.unquote(target).partition("#")
            there = (path.parent / place).resolve() if place else path
            if not re.match(r"[a-z]+:", target) and (not there.is_file() or (anchor and there in pages and anchor not in pages[there].ids)):
                yield f"{path.relative_to(folder)}: {target}"


def main():
    if MarkdownIt is None:
        sys.exit("site: the Python package markdown-it-py is missing: python3 -m pip install markdown-it-py, or apt-get install python3-markdown-it for "
                 "Debian's own Python")
    if sys.argv[1:] == ["--needs"]:
        return 0
    if len(sys.argv) != 4:
        sys.exit("usage: scripts/docs/make-site.py FOLDER COMMAND REFERENCE, or --needs")
    folder = pathlib.Path(sys.argv[1]).resolve()
    made = dict(zip(MADE, (c_api(), python_api(), http_api(description_of(sys.argv[2])))))
    made["docs/reference/command.md"] = pathlib.Path(sys.argv[3]).read_text(encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    site = Site(folder, made)
    site.write()
    dead = list(dead_links(folder))
    print("\n".join(f"site: a dead link in {one}" for one in dead), file=sys.stderr, end="\n" if dead else "")
    print(f"site: {len(site.written)} files, {len(site.sections)} sections to search, in {folder}/index.html")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
