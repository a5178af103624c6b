"""Publish/subscribe among nodes that have no fixed broker: trees, routes, rendezvous; pure protocol cores."""
