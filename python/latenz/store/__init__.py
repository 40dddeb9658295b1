"""Where sample sets live: run folders, Parquet files, and journals that are still being written."""
