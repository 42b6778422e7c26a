"""The command line with parts of 16 rows, so that tests of interrupted and shared work need few rows."""

from txcls import cli
from txcls.evaluation import predict_file

if __name__ == "__main__":
    predict_file.PART_ROWS = 16
    cli.main()
