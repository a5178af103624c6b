"""The publish/subscribe tree of paper 002: what it costs, how nodes build it, and the best there is.

overhead.py      work and overhead of a tree, exactly as section 2.1 defines them
connectivity.py  who hears whom, and layouts that cannot work
cells.py         interests as bit sets over the segments on which they differ
metrics.py       what a node compares when it shops for a parent (section 3.2), one function each
messages.py      what nodes say to each other, what a node is told, and what it asks for
node.py          SHOPPARENT, one node's core; states.py its states; publishing.py events over its tree
whole_graph.py   the same algorithm on a whole graph at once, compiled; cooling.py makes it better
enumeration.py   OPT by trying every spanning tree (section 3.1)
optimum.py       OPT by branch and bound; programme.py its linear programme and bounds that always hold
bound.py         a lower bound for systems too large to solve
"""
