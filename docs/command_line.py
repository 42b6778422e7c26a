"""Write docs/command-line.md from the commands' help texts: `make docs`."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

from txcls.cli import command_line

FILE = Path(__file__).with_name("command-line.md")
SHARED_BY = 4
"""An option with the same text in at least so many commands is explained once, at the top."""
_SHARED = "`txcls COMMAND --help` prints what this page says. Many commands have these arguments and options:\n\n"


def command_line_page() -> str:
    """The page with every command, its arguments and its options."""
    commands = typer.main.get_command(command_line())
    _list_whole_summaries(commands)
    page = get_docs_for_click(obj=commands, ctx=typer.Context(commands), name="txcls", title="The command line")
    start, *sections = re.split(r"^##+ `.*", page, flags=re.MULTILINE)
    lines = Counter(line for section in sections for line in _entries(section))
    shared = [line for line in lines if lines[line] >= SHARED_BY]
    parts = [start.partition("**Usage**")[0].strip(), "\n".join(_entries(start)), _SHARED + "\n".join(shared)]
    for section in sections:
        description, _, rest = section.partition("**Usage**")
        entries = _entries(rest.partition("**Commands**")[0])
        above = [line.partition(":")[0].removeprefix("* ") for line in entries if line in shared]
        own = [line for line in entries if line not in shared] + [f"* As above: {', '.join(above)}"] * bool(above)
        usage = rest.partition("$ ")[2].partition("\n")[0].replace(" [OPTIONS]", "").replace(" COMMAND [ARGS]...", "")
        parts += [f"## `{usage}`", description.strip(), "\n".join(own)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _entries(section: str) -> list[str]:
    """The lines on arguments, options and commands, except `--help`."""
    lines = [line for line in section.splitlines() if line.startswith("* ") and not line.startswith("* `--help`")]
    return [re.sub(r" <(?:str|path|list\[str\])>`", "`", line) for line in lines]


def _list_whole_summaries(group: Any) -> None:
    """List each command with the first paragraph of its help text, which is otherwise cut to 45 characters."""
    for command in group.commands.values():
        command.short_help = " ".join((command.help or "").partition("\n\n")[0].split())
        if hasattr(command, "commands"):
            _list_whole_summaries(command)


if __name__ == "__main__":
    FILE.write_text(command_line_page(), encoding="utf-8")
