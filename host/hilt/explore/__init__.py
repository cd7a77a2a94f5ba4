"""Design exploration: which VTA parameters run a network fastest, and what area they take."""
