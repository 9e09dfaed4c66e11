#!/usr/bin/env python3
"""What is told about the options of `warpwave` and `warpwave-mpi`, made by the build from the tables that the commands parse by, as their `help --json`
prints them: the reference with its lists, for scripts/docs/man-page.py and scripts/docs/make-site.py, and the completions of shells.
    scripts/command-reference.py --page FILE TABLES MPI_TABLES    docs/reference/command.md with lists for its comments `options of NAME`
    scripts/command-reference.py --completions DIR TABLES         completions for bash, zsh and fish
A file of tables that does not exist, of a command that was not built, leaves its comments as they are.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/command.md"
DEVICES = ("auto", "cpu", "cuda:0", "rocm:0")


class Option:
    def __init__(self, read):
        self.name, self.argument, self.kind = read["name"], read["argument"], read["kind"]
        self.required, self.help = read["required"], read["help"]
        self.actions = []

    @property
    def choices(self):
        return self.argument.split("|") if self.kind == "choice" else list(DEVICES) if self.name == "--device" else []

    @property
    def takes_file(self):
        return bool(re.match(r"(FILE|DIR|M|F\.\w+)$", self.argument or ""))

    def same(self, other):
        return (self.name, self.argument, self.help) == (other.name, other.argument, other.help)


class Action:
    def __init__(self, read):
        self.name, self.operands, self.summary = read["name"], read["operands"], read["summary"]
        self.options = [Option(one) for one in read["options"]]


class Command:
    def __init__(self, read):
        self.name, self.summary, self.operand = read["name"], read["summary"], read["operand"] or ""
        self.actions = [Action(one) for one in read["actions"]]
        self.options = [Option(one) for one in read["options"]]
        for action in self.actions:  # each once, with the actions that have it, unless all do
            for option in action.options:
                known = next((one for one in self.options if one.same(option)), None)
                if known is None:
                    self.options.append(known := option)
                known.actions.append(action.name)
        for option in self.options:
            if len(option.actions) == len(self.actions):
                option.actions = []


# ---- the reference page --------------------------------------------------------------------------------------------------------


def plain(text):
    """Help as Markdown shows it literally."""
    return re.sub(r"([\\<*])", r"\\\1", text)


def only_for(option, command):
    """The actions that have the option, or those that lack it if they are fewer."""
    lacking = [one.name for one in command.actions if one.name not in option.actions]
    if option.actions and len(lacking) < len(option.actions):
        return " (all but " + ", ".join(f"`{one}`" for one in lacking) + ")"
    return " (" + ", ".join(f"`{one}`" for one in option.actions) + ")" if option.actions else ""


def page_list(command, known=None):
    """The lists of a command. Options that `known`, a command on the same page, has in the same form are only named."""
    again = [one for one in command.options if known and any(one.same(other) for other in known.options)]
    lines = [f"- `{(one.name + ' ' + one.operands).strip()}`: {plain(one.summary)}" for one in command.actions]
    if command.actions and command.options:
        lines += ["", "Options:", ""]
    for option in command.options:
        if option not in again:
            name = option.name + (" " + option.argument if option.argument else "")
            lines.append(f"- `{name}`{only_for(option, command)}: {plain(option.help)}{'; required' if option.required else ''}")
    if again:
        lines += ["", f"As for `warpwave-mpi {known.name}`: " + ", ".join(f"`{one.name}`" for one in again) + "."]
    return "\n".join(lines) + "\n" if lines else ""


# ---- completions -----------------------------------------------------------------------------------------------------------------

MADE = "Made from the command's own tables by scripts/command-reference.py."


def ways(commands):
    """(words of the command line, operands, options) of each command without actions and of each action."""
    for command in commands:
        if not command.actions:
            yield command, command.name, command.operand, command.options
        for action in command.actions:
            yield command, f"{command.name} {action.name}", action.operands, action.options


def bash(commands):
    names = " ".join(one.name for one in commands)
    lines = [f"# Completion of the command `warpwave` for bash. {MADE}", "_warpwave()", "{",
             "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]:-} way choices='' options=''",
             "    COMPREPLY=()", "    way=$command", "    case $command in"]
    with_actions = [one for one in commands if one.actions]
    for command in with_actions:
        lines += [f"    {command.name})", f"        choices='{' '.join(one.name for one in command.actions)}'",
                  "        way=\"$command ${COMP_WORDS[2]:-}\"", "        ;;"]
    lines += ["    esac", "    if [ \"$COMP_CWORD\" -eq 1 ]; then", f"        choices='{names} --help --version'",
              "    elif [ \"$command\" = help ] && [ \"$COMP_CWORD\" -eq 2 ]; then", f"        choices='{names} --json'",
              "    elif [ \"$command\" = help ] && [ \"$COMP_CWORD\" -eq 3 ]; then", "        case $previous in"]
    lines += [f"        {one.name}) choices='{' '.join(action.name for action in one.actions)}' ;;" for one in with_actions]
    lines += ["        esac", "    elif [ -n \"$choices\" ] && [ \"$COMP_CWORD\" -eq 2 ]; then", "        choices=\"$choices --help\"", "    else",
              "        choices=''", "        case $way in"]
    for _, words, _, options in ways(commands):
        lines += [f"        '{words}')", f"            options='{' '.join(one.name for one in options)}'", "            case $previous in"]
        for option in options:
            if option.choices:  # a colon ends a word for bash, so that a device's number is left to type
                lines.append(f"            {option.name}) choices='{' '.join(one.split(':')[0] for one in option.choices)}' ;;")
            elif option.takes_file:
                lines.append(f"            {option.name}) return ;;")
            elif option.argument:
                lines.append(f"            {option.name}) compopt +o default 2>/dev/null; return ;;")
        lines += ["            esac", "            ;;"]
    lines += ["        esac", "        if [ -z \"$choices\" ] && [[ $word == -* ]]; then", "            choices=\"$options --help\"", "        fi", "    fi",
              "    [ -z \"$choices\" ] || mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$word\")", "}",
              "complete -o default -F _warpwave warpwave"]
    return "\n".join(lines) + "\n"


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_spec(option):
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    spec = f"{'*' if option.kind == 'list' else ''}{option.name}[{text}]"
    if option.choices:
        spec += f":{option.argument.replace(':', '')}:(" + " ".join(one.replace(":", "\\:") for one in option.choices) + ")"
    elif option.argument:
        spec += f":{option.argument}:" + ("_files" if option.takes_file else "")
    return quoted(spec)


def zsh(commands):
    lines = ["#compdef warpwave", f"# Completion of the command `warpwave` for zsh. {MADE}", "_warpwave() {", "    local -a commands actions",
             "    commands=("]
    lines += [f"        {quoted(one.name + ':' + one.summary.replace(':', chr(92) + ':'))}" for one in commands]
    lines += ["    )", "    if (( CURRENT == 2 )); then", "        _describe command commands", "        return", "    fi", "    case $words[2] in"]
    for command in commands:
        lines.append(f"    {command.name})")
        if command.name == "help":
            lines += ["        (( CURRENT == 3 )) && _describe command commands"]
        if command.actions:
            lines += ["        actions=("]
            lines += [f"            {quoted(one.name + ':' + one.summary.replace(':', chr(92) + ':'))}" for one in command.actions]
            lines += ["        )", "        if (( CURRENT == 3 )); then", "            _describe action actions", "            return", "        fi",
                      "        case $words[3] in"]
            for action in command.actions:
                specs = [zsh_spec(one) for one in action.options]
                lines += [f"        {action.name})", "            shift 2 words; (( CURRENT -= 2 ))",
                          "            _arguments " + " ".join(specs + ["'*:operand:_files'"]), "            ;;"]
            lines += ["        esac"]
        elif command.options and command.name != "help":
            lines += ["        shift words; (( CURRENT -= 1 ))", "        _arguments " + " ".join(zsh_spec(one) for one in command.options)]
        lines += ["        ;;"]
    lines += ["    esac", "}", '_warpwave "$@"']
    return "\n".join(lines) + "\n"


def fish(commands):
    names = " ".join(one.name for one in commands)
    lines = [f"# Completion of the command `warpwave` for fish. {MADE}", "complete -c warpwave -f",
             f"set -l commands {names}"]
    for command in commands:
        lines.append(f"complete -c warpwave -n \"not __fish_seen_subcommand_from $commands\" -a {command.name} -d {quoted(command.summary)}")
    lines.append('complete -c warpwave -n "__fish_seen_subcommand_from help" -a "$commands"')
    for command in commands:
        seen = f"__fish_seen_subcommand_from {command.name}"
        if command.actions:
            actions = " ".join(one.name for one in command.actions)
            lines += [f"complete -c warpwave -n \"{seen}; and not __fish_seen_subcommand_from {actions}\" -a {one.name} -d {quoted(one.summary)}"
                      for one in command.actions]
    for command, words, operands, options in ways(commands):
        parts = words.split()
        condition = "; and ".join(f"__fish_seen_subcommand_from {one}" for one in parts)
        if operands and command.name != "help":
            lines.append(f"complete -c warpwave -n \"{condition}\" -F")
        for option in options:
            name = f"-s {option.name[1:]}" if len(option.name) == 2 else f"-l {option.name[2:]}"
            more = f" -x -a \"{' '.join(option.choices)}\"" if option.choices else " -r -F" if option.takes_file else " -x" if option.argument else ""
            lines.append(f"complete -c warpwave -n \"{condition}\" {name}{more} -d {quoted(option.help)}")
    return "\n".join(lines) + "\n"


# ---- writing ---------------------------------------------------------------------------------------------------------------------


def read_tables(path):
    return [Command(one) for one in json.loads(path.read_text(encoding="utf-8"))["commands"]] if path.exists() else []


def reference(commands, of_mpi):
    """The reference with the lists of these commands; the later ones of `of_mpi` only name what the first one explains."""
    page = PAGE.read_text(encoding="utf-8")
    lists = {one.name: page_list(one) for one in commands}
    lists |= {f"mpi {one.name}": page_list(one, None if one is of_mpi[0] else of_mpi[0]) for one in of_mpi}
    return re.sub(r"<!-- options of ([\w -]+?) -->\n", lambda found: lists.get(found.group(1), found.group(0)), page)


def write_completions(folder, commands):
    for name, text in (("warpwave.bash", bash(commands)), ("_warpwave", zsh(commands)), ("warpwave.fish", fish(commands))):
        (folder / name).write_text(text, encoding="utf-8")


def main():
    what, to, *tables = sys.argv[1], pathlib.Path(sys.argv[2]), *map(pathlib.Path, sys.argv[3:])
    if what == "--completions":
        write_completions(to, read_tables(tables[0]))
    else:
        to.write_text(reference(*map(read_tables, tables)), encoding="utf-8")


if __name__ == "__main__":
    main()
