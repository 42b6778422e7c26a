"""`python -m txcls`: the command line, which is also installed as `txcls`."""

from txcls.cli import main

if __name__ == "__main__":
    main()
