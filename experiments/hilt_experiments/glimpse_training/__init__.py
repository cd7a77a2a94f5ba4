"""The offline training of Glimpse's weights.

It has layers and targets that no evaluation uses, the twin's measurements of them, and the three trainings. PyTorch
(extra `glimpse-training`) is imported here only.
"""
