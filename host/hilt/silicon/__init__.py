"""Machine models of boards that people own, fitted to measurements of such boards."""
