"""Holding a container to its slice of a card.

The preloaded C library (``lib/``) does so in the container, the node agent (``agent/``) from outside.
Nothing in this room is used by the engine.
"""
