"""The tuner `hilt`: a timing model calibrated by measurements, a model of failures, and a measure of confidence."""
