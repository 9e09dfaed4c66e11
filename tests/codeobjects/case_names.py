"""Prints the kernels that cases.py has tests for, one per line. Its tables are parsed, not imported, because importing needs numpy and the emulator:
only the keys of TESTS are evaluated, with the constants in them. A table of an unknown form is an error."""
import ast
import collections
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def constants_of(tree):
    """The values of the names at the top of a file that are literals."""
    found = {"__builtins__": {}}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                found[statement.targets[0].id] = ast.literal_eval(statement.value)
            except ValueError:
                pass
    return found


def value_of(expression, constants):
    return eval(compile(ast.fix_missing_locations(ast.Expression(expression)), "case_names", "eval"), constants)


def spread(value, constants):
    """The keys of what follows ** in a table: dict.fromkeys(KEYS, TEST), {KEY: TEST for ...}, or the table of another file."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "dict.fromkeys":
        return list(value_of(value.args[0], constants))
    if isinstance(value, ast.DictComp):
        return value_of(ast.ListComp(value.key, value.generators), constants)
    if isinstance(value, ast.Attribute) and value.attr == "TESTS" and isinstance(value.value, ast.Name):
        return names_of(value.value.id)
    raise ValueError(f"line {value.lineno}: the keys of this part of TESTS cannot be read: {ast.unparse(value)[:60]}")


def names_of(module):
    """The keys of a file's TESTS."""
    tree = ast.parse((HERE / f"{module}.py").read_text(encoding="utf-8"))
    constants, names = constants_of(tree), []
    tables = [statement.value for statement in tree.body if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "TESTS"]
    if len(tables) != 1 or not isinstance(tables[0], ast.Dict):
        raise ValueError(f"{module}.py must have one table TESTS")
    for key, value in zip(tables[0].keys, tables[0].values, strict=True):
        names += spread(value, constants) if key is None else [value_of(key, constants)]
    return names


def main():
    try:
        names = names_of("cases")
    except (ValueError, NameError) as wrong:
        sys.exit(f"tests/codeobjects/case_names.py cannot read the tables of tests: {wrong}")
    twice = [name for name, count in collections.Counter(names).items() if count > 1]
    if twice:
        sys.exit(f"tests/codeobjects has several tests of one kernel, of which only the last counts: {', '.join(twice)}")
    print("\n".join(names))


if __name__ == "__main__":
    main()
