"""`python -m hilt`: the command `hilt` of this Python."""

from hilt.cli.entry import main

main()
