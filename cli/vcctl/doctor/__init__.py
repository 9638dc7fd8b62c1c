"""``vcctl-py doctor``: finds what breaks batch clusters, with the object, the evidence and the fix."""
