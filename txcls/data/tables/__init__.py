"""Tables: CSV, TSV, JSON Lines, Excel and Parquet as rows of texts and labels."""
