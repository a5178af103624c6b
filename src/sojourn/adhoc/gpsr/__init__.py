"""Greedy perimeter stateless routing (Karp and Kung): packets follow places, not routes.

neighbours.py  who is in reach and where, learnt from beacons and from every packet heard
planar.py      which links to walk along a void, and which is next counter-clockwise
core.py        one hop of a packet: greedy where somebody is nearer, along the perimeter where nobody is
"""
