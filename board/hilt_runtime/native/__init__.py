"""The native engine: the steps of an inference in C, with the bits of the operators in numpy."""
