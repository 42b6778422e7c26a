"""`python -m txcls`: the command line, as `txcls` once the package is installed."""

from txcls.cli import main

if __name__ == "__main__":
    main()
