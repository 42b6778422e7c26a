"""Readers of tables (CSV, TSV, JSON Lines, Excel, Parquet) and their rows with texts and labels."""
