"""Paper 000: what it costs a content-based network that its publishers move."""
