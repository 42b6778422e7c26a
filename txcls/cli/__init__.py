"""The command line: train, pretrain, evaluate, calibrate, predict, inspect, sizes, generate, import, export, data.

    python -m txcls train sample
    python -m txcls predict sample "When does the train to the coast leave?"

Each command calls the library and prints; errors become one line and exit code 2. Slow libraries are imported inside
the commands that need them, so that `--help` answers at once.
"""

import sys
from typing import NoReturn

import typer

from txcls.cli import data, export
from txcls.cli.evaluate import calibrate, evaluate
from txcls.cli.inspect import inspect, sizes
from txcls.cli.language import generate, import_weights
from txcls.cli.output import note, process_number
from txcls.cli.predict import predict
from txcls.cli.train import pretrain, train
from txcls.errors import StoppedError, TxclsError, one_line

__all__ = ["app", "main"]

app = typer.Typer(
    name="txcls",
    help="Train, evaluate, use and inspect a Transformer text classifier written from scratch.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (train, pretrain, evaluate, calibrate, predict, inspect, sizes, generate):
    app.command()(command)
app.command("import")(import_weights)
app.add_typer(data.app, name="data")
app.add_typer(export.app, name="export")


STOPPED = "stopped by Ctrl-C before it was finished; nothing unfinished was kept"


def main() -> NoReturn:
    """Run the command line; errors become one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a lone surrogate in a text must not crash printing
    try:
        code = app(prog_name="txcls", standalone_mode=False)
    except TxclsError as error:
        _fail(str(error), in_all_processes=isinstance(error, StoppedError))
    except typer.TyperException as error:  # wrong usage
        if message := error.format_message():  # empty where the help was printed instead
            _fail(message)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort) as error:
        if isinstance(error.__cause__ or error.__context__, EOFError):  # typer turns both into Abort
            _fail("the input ended unexpectedly; make or fetch the file again")
        note(STOPPED)
        sys.exit(130)
    except MemoryError:
        _fail("out of memory; process less at once, or use a machine with more")
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        sys.stdout = None
        sys.exit(0)
    if code == 130:  # Ctrl-C, as typer reports it
        note(STOPPED)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, *, in_all_processes: bool = False) -> NoReturn:
    """Print the error and exit with 2; what happens in all processes of a torchrun run is printed by the first only."""
    number = process_number()
    if not (number and in_all_processes):
        note("error: " + one_line(message) + (f" [process {number}]" if number else ""))
    sys.exit(2)
