"""The command line: train, pretrain, evaluate, calibrate, report, predict, inspect, sizes, generate, import, export,
data, lesson.

    python -m txcls train sample
    python -m txcls predict sample "When does the train to the coast leave?"

Each command calls the library and prints the results; an error gives one line and exit code 2. A command's module is
imported only when the command is called, so that `--help` is fast.
"""

import sys
import time
from importlib import import_module
from typing import NoReturn

import typer

from txcls.cli.output import note, process_number
from txcls.errors import StoppedError, TxclsError
from txcls.wording import one_line

__all__ = ["COMMANDS", "command_line", "main"]

COMMANDS = {
    "train": ("train", "Train on a file of your own, or a preset; the result is saved as a checkpoint folder."),
    "pretrain": ("train", "Train a model on unlabelled training texts, for `train --init` and `generate`."),
    "evaluate": (
        "evaluate",
        "Measure a checkpoint on the test (or other) rows of its data set, or on all rows of a file of your own.",
    ),
    "calibrate": (
        "evaluate",
        "Refit a checkpoint's calibration on its data set's validation rows; the ranking of classes does not change.",
    ),
    "report": (
        "report",
        "How good a checkpoint is and where it fails: mistakes, confusions, doubtful labels, the linear baseline.",
    ),
    "predict": ("predict", "Classify texts, or the rows of a file of any size."),
    "inspect": ("inspect", "Print name and shape of every tensor from token ids to probabilities, for one text."),
    "sizes": (
        "inspect",
        "Count the parameters of a preset or checkpoint part by part; a preset's model is never allocated.",
    ),
    "generate": ("language", "Continue a text with a causal language model, token by token."),
    "import": (
        "language",
        "Check that a published GPT-2 can be read, downloading it by name if needed, and print its size.",
    ),
    "data": ("data", "List, download and show data sets."),
    "export": ("export", "Make a page of a model that needs no server."),
    "lesson": ("lesson", "Write, check and print lessons."),
}
"""Each command's module in this package, and the first sentence of its help."""
_FUNCTIONS = {"import": "import_weights"}


def command_line(*names: str) -> typer.Typer:
    """The command line with only these commands imported (default: all); the others have just a name and help."""
    app = typer.Typer(
        name="txcls",
        help="Train, evaluate, use and inspect a Transformer text classifier written from scratch.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for name, (module, summary) in COMMANDS.items():
        if names and name not in names:
            app.command(name, help=summary)(lambda: None)
            continue
        commands = import_module(f"txcls.cli.{module}")
        if hasattr(commands, "app"):
            app.add_typer(commands.app, name=name)
        else:
            app.command(name)(getattr(commands, _FUNCTIONS.get(name, name)))
    return app


STOPPED = "stopped by Ctrl-C before it was finished; nothing unfinished was kept"


def main() -> NoReturn:
    """Run the command line; an error gives one line on standard error and exit code 2."""
    started = time.monotonic()  # imports take seconds on a busy machine
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a lone surrogate in a text must not crash printing
    try:
        named = next((name for name in sys.argv[1:2] if name in COMMANDS), "none")
        code = command_line(named)(prog_name="txcls", standalone_mode=False, obj=started)
    except TxclsError as error:
        _fail(str(error), in_all_processes=isinstance(error, StoppedError))
    except typer.TyperException as error:  # wrong usage
        if message := error.format_message():  # empty if the help was printed instead
            _fail(message)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort) as error:
        if isinstance(error.__cause__ or error.__context__, EOFError):  # Abort may also come from EOFError
            _fail("the input ended unexpectedly; make or fetch the file again")
        note(STOPPED)
        sys.exit(130)
    except MemoryError:
        _fail("out of memory; process less at once, or use a machine with more")
    except BrokenPipeError:  # the reader of our output has exited, as with `| head`
        sys.stdout = None
        sys.exit(0)
    if code == 130:  # Ctrl-C, as reported by typer
        note(STOPPED)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, *, in_all_processes: bool = False) -> NoReturn:
    """Print the error and exit with 2; an error in all processes of a torchrun run is printed only by the first."""
    number = process_number()
    if not (number and in_all_processes):
        note("error: " + one_line(message) + (f" [process {number}]" if number else ""))
    sys.exit(2)
