"""What a VTA is: parameters, instruction encoding, layouts, programs and the numpy reference.
Imports nothing of hilt but hilt.trial and hilt.paths."""
