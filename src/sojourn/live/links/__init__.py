"""Links between brokers on sockets."""
