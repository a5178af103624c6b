"""Broker processes: sockets, signals, who is let in."""
