"""The command line: parses, calls the engine and the store, prints."""
