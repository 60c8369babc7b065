"""`--on ray`: engines and scorers on the nodes of a Ray cluster. Nothing here decides what is asked when.

What runs on a node is what runs on one machine: an opened engine (`engine_host.py`), a scoring process
(`scoring_host.py`). This package puts them there, hands them pages, and replaces those that are lost with their node.
"""

HOOKS = {"executors": {"ray": "loupe.features.cluster.executor:open_cluster"}}
