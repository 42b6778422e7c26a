"""Where the app shows a checkpoint that a command has saved."""

import os
import shlex
from pathlib import Path
from urllib.parse import quote

from txcls.checkpoint.folders import checkpoint_root
from txcls.wording import shown


def lines_on_the_app(folder: Path) -> tuple[str, str]:
    """Two lines that say at which address the app shows the checkpoint in this folder, and how to start the app."""
    root, app = folder.resolve().parent, Path(__file__).parents[2]
    is_elsewhere = (app / "streamlit_app.py").is_file() and not Path("streamlit_app.py").is_file()
    there = f"cd {shlex.quote(str(app))} && " if is_elsewhere else ""
    is_shown = root == checkpoint_root().resolve()
    variable = "" if is_shown else f"TXCLS_CHECKPOINTS={shlex.quote(str(root))} "
    address = f"http://localhost:{os.environ.get('STREAMLIT_SERVER_PORT', '8501')}/?checkpoint={quote(folder.name)}"
    return (
        f"in the app{', also if it is already running' if is_shown else ''}: {shown(address, limit=300)}",
        f"  {there}{variable}streamlit run streamlit_app.py",
    )
