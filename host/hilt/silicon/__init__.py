"""Machine models of boards that people own, fitted to what such boards measured."""
