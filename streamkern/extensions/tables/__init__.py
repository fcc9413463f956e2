"""Tables in CSV, Parquet and data frames: how they are read, and become inputs of numbers."""
