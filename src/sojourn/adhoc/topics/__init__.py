"""Publish/subscribe by topic among nodes that have no broker but themselves (paper 004, section 3).

places.py    where a topic is at home: a node, a place, or the waypoint of a map next to that place
state.py     what a node keeps: subscriptions as soft state, events it has seen
core.py      broker and rendezvous: what a node does with subscriptions, advertisements and events
repair.py    beyond the paper: events are kept near home and sent again to whoever has not got them
node.py      a whole node: topics over GPSR or over AODV
station.py   one such node as a core that a radio could drive
"""
