"""Requests on a part or an aspect of an object: binding, eviction, scale, tokens, logs, reviews."""
