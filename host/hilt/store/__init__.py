"""SQLite database of runs and trials."""
