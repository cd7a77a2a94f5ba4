"""TFLite models as ONNX graphs."""
