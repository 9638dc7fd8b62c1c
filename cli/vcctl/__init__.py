"""``vcctl-py``: what people ask of and do to queues, groups, jobs and pods."""
