"""Holding a container to its slice of a card.

Empty for now: the preloaded C library (``lib/``) and the node agent (``agent/``) will live here.
Nothing in this room is used by the engine.
"""
