"""Quantisation: from a float ONNX model to QDQ with symmetric power-of-two scales."""
