"""A broker's tables and what it does with each message, as pure code without clock, sockets or chance."""
