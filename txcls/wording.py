"""How numbers are written wherever people read them."""


def percentage(share: float, digits: int = 1) -> str:
    """A share from 0 to 1 as `93.1 %`, with so many digits after the point."""
    return f"{share:.{digits}%}".replace("%", " %")
