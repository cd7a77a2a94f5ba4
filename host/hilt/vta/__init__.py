"""The VTA: parameters, instruction encoding, layouts, programs and the numpy reference.

Imports only hilt.trial and hilt.paths of hilt.
"""
