"""The executable forms of hls/, built once by content and bound to Python."""
