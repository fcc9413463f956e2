"""Fitted models in the formats of others."""

from streamkern.exchange.export import to_onnx, write_onnx

__all__ = ["to_onnx", "write_onnx"]
