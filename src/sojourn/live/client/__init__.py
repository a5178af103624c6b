"""The client library: a client that moves, and a client of several brokers that stand in for one another."""
