"""Presets: complete settings as TOML files."""

import tomllib
from importlib import resources
from pathlib import Path

from txcls.config.settings import RunConfig
from txcls.errors import ConfigError


def preset_names() -> tuple[str, ...]:
    """The sorted names of the presets that ship with the package."""
    folder = resources.files("txcls") / "config" / "presets"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def load_preset(name_or_path: str | Path) -> RunConfig:
    """The preset with this name or in this TOML file.

    Raises:
        ConfigError: there is no such preset or file, it is not TOML, or a setting in it is invalid.
    """
    path = Path(name_or_path)
    if str(name_or_path) in preset_names():
        text = (resources.files("txcls") / "config" / "presets" / f"{name_or_path}.toml").read_text(encoding="utf-8")
    elif path.suffix == ".toml":
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read preset file {path}: {error}") from None
    else:
        raise ConfigError(
            f"no preset named {str(name_or_path)!r}; expected one of {', '.join(preset_names())}, or a .toml file"
        )
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name_or_path}: not a TOML file: {error}") from None
    return RunConfig.from_mapping({"name": path.stem, **values}, source=f"preset {name_or_path}")
