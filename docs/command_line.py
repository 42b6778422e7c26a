"""Write docs/command-line.md from the commands' help texts: `make docs`."""

from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

from txcls.cli import command_line

FILE = Path(__file__).with_name("command-line.md")


def command_line_page() -> str:
    """The page with every command, its arguments and its options."""
    commands = typer.main.get_command(command_line())
    _list_whole_summaries(commands)
    page = get_docs_for_click(obj=commands, ctx=typer.Context(commands), name="txcls", title="The command line")
    return page.rstrip() + "\n"


def _list_whole_summaries(group: Any) -> None:
    """List each command with the first paragraph of its help text, which is otherwise cut to 45 characters."""
    for command in group.commands.values():
        command.short_help = " ".join((command.help or "").partition("\n\n")[0].split())
        if hasattr(command, "commands"):
            _list_whole_summaries(command)


if __name__ == "__main__":
    FILE.write_text(command_line_page(), encoding="utf-8")
