"""The node agent: finds cards, publishes them, and hands slices of them to containers."""
