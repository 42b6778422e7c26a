"""The command line: each command calls the library and prints the results.

An error prints one line and exits with code 2. A command's module is imported only when the command is called, which
makes `--help` fast.
"""

import sys
import time
from importlib import import_module
from typing import NoReturn

import typer

from txcls.cli.shared import command, note
from txcls.errors import TxclsError, one_line, reason_of

__all__ = ["COMMANDS", "command_line", "main"]

COMMANDS = {
    "train": ("train", "Train on your own file or with a preset; the result is saved as a checkpoint folder."),
    "pretrain": ("train", "Pre-train a model on unlabelled texts, for `train --init` and `generate`."),
    "evaluate": (
        "evaluate",
        "Evaluate a checkpoint on the test (or other) rows of its data set, or on all rows of your own file.",
    ),
    "compare": (
        "inspect",
        "Compare two checkpoints on one text (predictions, attention) and on the same test rows (accuracy).",
    ),
    "measure": ("inspect", "Measure the parts of a checkpoint, or a simpler model, on the test rows of its data set."),
    "report": (
        "evaluate",
        "Report a checkpoint's quality and failures: classes, confusions, thresholds, mistakes, doubtful labels.",
    ),
    "predict": ("predict", "Classify texts, or the rows of a file of any size."),
    "inspect": ("inspect", "Print the name and shape of every tensor from token ids to probabilities, for one text."),
    "sizes": (
        "inspect",
        "Count the parameters of a preset or checkpoint, part by part; the model of a preset is not allocated.",
    ),
    "generate": ("predict", "Continue a text with a causal language model, token by token."),
    "import": (
        "import_model",
        "Put a model from a zip file under checkpoints/, or turn a published text classifier into a checkpoint.",
    ),
    "data": ("data", "List, download and show data sets."),
    "export": ("export", "Export a model or a lesson as a page that needs no server."),
    "lesson": ("lesson", "Write, check and print lessons."),
}
"""Each command's module in this package, and the first sentence of its help."""
_FUNCTION_NAMES = {"import": "import_model"}


def command_line(*names: str) -> typer.Typer:
    """The command line with only these commands imported (default: all); the others have only a name and help."""
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
            app.command(name)(getattr(commands, _FUNCTION_NAMES.get(name, name)))
    return app


STOPPED = "stopped by Ctrl-C before the end; unfinished results were discarded"


def main() -> NoReturn:
    """Run the command line; an error prints one line to standard error and exits with code 2."""
    started = time.monotonic()  # before the imports, which take seconds on a busy machine
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # printing a lone surrogate must not fail
    try:
        command = next((name for name in sys.argv[1:2] if name in COMMANDS), "none")
        code = command_line(command)(prog_name="txcls", standalone_mode=False, obj=started)
    except TxclsError as error:
        _fail(str(error), **error.options)
    except typer.TyperException as error:  # wrong usage
        if message := error.format_message():  # empty if the help was printed instead
            if command in ("evaluate", "report", "compare") and "extra argument" in message:
                message += "; a file is given with --data"
            _fail(message)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort) as error:
        if isinstance(error.__cause__ or error.__context__, EOFError):  # Abort may also come from EOFError
            _fail("the input ended unexpectedly; create or download the file again")
        note(STOPPED)
        sys.exit(130)
    except MemoryError:
        _fail("out of memory; process less data at a time, or use a machine with more memory")
    except BrokenPipeError:  # the program that reads the output has ended, as with `| head`
        sys.stdout = None
        sys.exit(0)
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {reason_of(error)}; choose another file or folder")
    if code == 130:  # Ctrl-C, as reported by typer
        note(STOPPED)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, **options: str | bool) -> NoReturn:
    """Print the error, and the command with the options that would fix it; exit with code 2."""
    print(f"error: {one_line(message)}", file=sys.stderr)
    if any(options.values()):
        note(f"→ {command(**options)}")
    sys.exit(2)
