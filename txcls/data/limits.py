"""Limits on the files that are read; a file that exceeds one is refused, at the latest during reading."""

MAX_BYTES = 1 << 30
"""Maximum uncompressed size of a file or archive, in bytes."""
MAX_RATIO = 100
"""Maximum ratio of uncompressed to compressed size; texts have about 10."""
RATIO_FREE_BYTES = 1 << 20
"""Uncompressed (for Parquet: decoded) size in bytes up to which MAX_RATIO is not checked."""
MAX_FIELD_CHARACTERS = 1 << 20
"""Maximum length of a field, such as a text, in characters; the longest in published data sets have about 160,000."""
MAX_ROW_CHARACTERS = 4 << 20
"""Maximum length of a row or line in characters, with all its fields."""
MAX_EMPTY = 100_000
"""Maximum number of consecutive empty lines in a table."""
MAX_TEXT_FILE_BYTES = 4 << 20
"""Maximum size in bytes of a text in a folder or archive with one file per text."""
MAX_JSON_CHARACTERS = 16 << 20
"""Maximum length in characters of a JSON file that is read whole (CLINC150: 2.5 million); arrays of rows are not."""
MAX_JSON_DEPTH = 100
"""Maximum nesting depth of JSON."""
MAX_COLUMNS = 10_000
"""Maximum number of columns in a table."""
MAX_TRAINING_ROWS = 5_000_000
"""Maximum number of rows in a table for training, which must fit in memory; `predict` reads tables of any length."""
CELLS_PER_BYTE = 20
"""Maximum number of values per byte in a Parquet file with more than a million values."""
SNIFFED_CHARACTERS = 100_000
"""Number of characters of a text file from which its format is guessed."""
HEAD_ROWS = 1000
"""Number of rows from which a table's columns are determined."""
MAX_SHEETS = 100
"""Maximum number of sheets in an Excel workbook."""
MAX_SPARSE = 2_000_000
"""Number of cells above which at least one in twenty cells of an Excel sheet must be filled."""
MAX_WORKBOOK_BYTES = 1 << 29
"""Maximum uncompressed size of an Excel workbook in bytes; its texts must fit in memory."""
MAX_BATCH_BYTES = 64 << 20
"""Maximum number of uncompressed bytes of a Parquet file in memory at a time."""
MAX_NESTED = 10_000_000
"""Maximum number of list elements in one column of a Parquet row group."""
