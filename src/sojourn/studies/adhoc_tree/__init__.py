"""Paper 002: which tree to build without infrastructure, what it costs, and how far it is from the best."""
