"""Ad-hoc on-demand distance vector routing as RFC 3561 has it: routes are asked for when they are needed.

tables.py     a node's routes, what it is looking for, its counters, and the RFC's constants
routes.py     the rules by which a route is made, taken over, used, and given up
discovery.py  asking for a route: expanding ring, retries, limits, and packets that wait meanwhile
errors.py     telling others that a route is gone
core.py       what a node does with each message, each packet to send, each broken link and each timer

Left out, as the RFC allows: local repair, gratuitous replies, multicast, subnets. A node remembers the latest
request of each originator instead of every one of the last 5.6 s: an older request that comes late is
dropped. The blacklist of one-way links is not needed on a radio whose links all work both ways.
"""
