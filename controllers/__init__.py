"""Controllers: PodGroups for plain pods, the state of queues, the queues that must exist."""
