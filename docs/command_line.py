"""Write docs/command-line.md from the commands' help texts: `make docs`."""

import re
from collections import Counter
from pathlib import Path

import typer
from typer.cli import get_docs_for_click

from txcls.cli import command_line

FILE = Path(__file__).with_name("command-line.md")
SHARED_BY = 3
"""An option with the same text in at least this many commands is explained once, at the top."""
_SHARED = "`txcls COMMAND --help` prints what this page says. Several commands have these arguments and options:\n\n"


def command_line_page() -> str:
    """The page with every command, its arguments and its options."""
    commands = typer.main.get_command(command_line())
    page = get_docs_for_click(obj=commands, ctx=typer.Context(commands), name="txcls", title="The command line")
    start, *sections = re.split(r"^##+ `.*", page, flags=re.MULTILINE)
    lines = Counter(line for section in sections for line in _entries(section))
    shared = [line for line in lines if lines[line] >= SHARED_BY]
    parts = [start.partition("**Usage**")[0].strip(), _SHARED + "\n".join(shared)]
    for section in sections:
        description, _, rest = section.partition("**Usage**")
        if "**Commands**" not in rest:
            usage = rest.partition("$ ")[2].partition("\n")[0].replace(" [OPTIONS]", "").removeprefix("txcls ")
            own = [line for line in _entries(rest) if line not in shared]
            above = [f"`{re.split('[ `]', line)[2]}`" for line in _entries(rest) if line in shared]
            own += [f"* As above: {', '.join(above)}"] if above else []
            parts += [f"## `{usage}`", description.strip(), "\n".join(own)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _entries(section: str) -> list[str]:
    """The lines on arguments and options, except `--help`; that an argument is required, the usage shows."""
    lines = [line for line in section.splitlines() if line.startswith("* ") and not line.startswith("* `--help`")]
    return [re.sub(r"^(\* `[][A-Z|_.]+) <.*?>`(.*?)(?:  \[required\])?$", r"\1`\2", line) for line in lines]


if __name__ == "__main__":
    FILE.write_text(command_line_page(), encoding="utf-8")
