"""Queues: which take new jobs, how many groups wait and run in them, and what Commands ask of them."""
