"""The same cores on sockets: MQTT 5 for clients, links between brokers, the journal, the page."""
