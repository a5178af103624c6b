"""Paper 003: central, quenched, broadcast, multicast and replicated publish/subscribe, measured."""
