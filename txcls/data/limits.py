"""Limits on what is read from a file; larger files are refused while reading."""

MAX_BYTES = 1 << 30
"""Largest unpacked size of a file or archive."""
MAX_RATIO = 100
"""Largest ratio of unpacked to packed size; texts reach about 10."""
RATIO_FROM = 1 << 20
"""Unpacked (or decoded Parquet) bytes up to which MAX_RATIO is not checked."""
LONGEST_FIELD = 1 << 20
"""Most characters of a field, such as a text; the published data sets reach about 160,000."""
LONGEST_ROW = 4 << 20
"""Most characters of a row or line, all fields together."""
MAX_EMPTY = 100_000
"""Most consecutive empty lines in a table."""
LONGEST_FILE = 4 << 20
"""Most bytes of one text in a folder or archive with one file per text."""
LONGEST_JSON = 16 << 20
"""Most characters of a JSON document that is read whole (CLINC150 has 2.5 million); arrays of rows are streamed."""
DEEPEST = 100
"""Most levels of nesting in JSON."""
MAX_COLUMNS = 10_000
"""Most columns of a table."""
MAX_ROWS = 5_000_000
"""Most rows of a table for training, which holds them in memory; `predict` reads tables of any length."""
CELLS_PER_BYTE = 20
"""Most values per byte of a Parquet file with more than a million values."""
SNIFFED = 100_000
"""Characters of a text file from which its format is guessed."""
HEAD_ROWS = 1000
"""Rows from which a table's columns are determined."""
MAX_SHEETS = 100
"""Most sheets of an Excel workbook."""
MAX_SPARSE = 2_000_000
"""Cells of an Excel sheet after which one in twenty must hold something."""
MAX_WORKBOOK_BYTES = 1 << 29
"""Largest unpacked size of an Excel workbook, whose texts are held in memory."""
BATCH_BYTES = 64 << 20
"""Most unpacked bytes of a Parquet file that are held at once."""
MAX_NESTED = 10_000_000
"""Maximum number of list elements in one column of a Parquet row group."""
