"""The tuner `hilt`: a timing model that is calibrated by what the board says, a model of what fails, and a measure of
how sure it is."""
