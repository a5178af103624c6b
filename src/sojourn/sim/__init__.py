"""A deterministic world from one seed: the clock, links, brokers and clients around the protocol cores."""
