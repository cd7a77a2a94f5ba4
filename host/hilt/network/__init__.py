"""Networks: from an ONNX file to an integer graph, its quantisation and its reference."""
