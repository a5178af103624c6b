"""What a broker does when a client leaves and arrives, as pure code without clock, sockets or chance."""
