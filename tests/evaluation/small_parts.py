"""The command line with parts of 16 rows, so that tests of stopped and shared work need few rows."""

from txcls import cli
from txcls.evaluation import scoring

if __name__ == "__main__":
    scoring.PART_ROWS = 16
    cli.main()
