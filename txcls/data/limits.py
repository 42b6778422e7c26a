"""How much a file may make this program read or hold; whatever is larger is refused while it is read."""

MAX_BYTES = 1 << 30
"""What a file or archive may hold once it is unpacked."""
MAX_RATIO = 100
"""How many times its packed size a stream may unpack to; texts reach 10 or so."""
RATIO_FROM = 1 << 20
"""Unpacked bytes, and decoded Parquet bytes, up to which MAX_RATIO does not matter."""
LONGEST_FIELD = 1 << 20
"""Characters of a field, such as a text; the longest of the published data sets have some 160,000."""
LONGEST_ROW = 4 << 20
"""Characters of a row or line, all its fields together."""
MOST_EMPTY = 100_000
"""Empty lines one after another in a table."""
LONGEST_FILE = 4 << 20
"""Bytes of one text in a folder or archive that has a file for each."""
LONGEST_JSON = 16 << 20
"""Characters of a JSON document that is read as a whole (CLINC150 has 2.5 million); arrays of rows are not."""
DEEPEST = 100
"""Levels of nesting in JSON."""
MAX_COLUMNS = 10_000
"""Columns of a table."""
MAX_ROWS = 5_000_000
"""Rows of a table that is held in memory, which training does; `predict` reads a table of any length."""
CELLS_PER_BYTE = 20
"""Values that a byte of a Parquet file may stand for, beyond a million of them."""
SAMPLE_ROWS = 100_000
"""Rows of a table of one's own that `data show` reads."""
SAMPLE_CHARACTERS = 20_000_000
"""Characters of their texts after which it reads no more."""
