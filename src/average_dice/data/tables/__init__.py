"""Logs from tables: data frames, CSV and Parquet files with the user's own column names."""

from average_dice.data.tables.frames import from_dataframe

__all__ = ["from_dataframe"]
