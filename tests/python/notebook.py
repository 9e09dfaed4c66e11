"""Executes the code cells of a notebook in one namespace, without Jupyter: what each prints, and the value of its last expression.

    python notebook.py FILE       writes that into the notebook, as its outputs
"""
import ast
import contextlib
import io
import json
import pathlib
import sys


def cells_of(path):
    """The notebook, and its code cells."""
    notebook = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    return notebook, [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs_of(path):
    """For each code cell: (what it printed, the value of its last expression as text, or "")."""
    names = {"__name__": "__main__"}
    for number, cell in enumerate(cells_of(path)[1], 1):
        tree, place = ast.parse("".join(cell["source"])), f"{path}, cell {number}"
        last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(tree, place, "exec"), names)
            value = eval(compile(last, place, "eval"), names) if last else None
        yield printed.getvalue(), "" if value is None else repr(value)


def kept(cell):
    """The outputs that a cell of the notebook has, in the same form."""
    printed = "".join("".join(one["text"]) for one in cell["outputs"] if one["output_type"] == "stream")
    value = "".join("".join(one["data"]["text/plain"]) for one in cell["outputs"] if one["output_type"] == "execute_result")
    return printed, value


def write(path):
    notebook, cells = cells_of(path)
    for number, (cell, (printed, value)) in enumerate(zip(cells, outputs_of(path)), 1):
        cell["execution_count"] = number
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}] if printed else []
        if value:
            cell["outputs"].append({"data": {"text/plain": value.splitlines(keepends=True)}, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    pathlib.Path(path).write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])
