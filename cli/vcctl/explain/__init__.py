"""``vcctl-py explain``: why a pod, PodGroup or queue is as it is, in the engine's own numbers."""
