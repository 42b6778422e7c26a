"""Write docs/command-line.md from the commands' help texts: `make docs`."""

from pathlib import Path

import typer
from typer.cli import get_docs_for_click

from txcls.cli import command_line

FILE = Path(__file__).with_name("command-line.md")


def command_line_page() -> str:
    """The page with every command, its arguments and its options."""
    commands = typer.main.get_command(command_line())
    page = get_docs_for_click(obj=commands, ctx=typer.Context(commands), name="txcls", title="The command line")
    return page.rstrip() + "\n"


if __name__ == "__main__":
    FILE.write_text(command_line_page(), encoding="utf-8")
