"""What the API objects look like: one pydantic model file per kind.

Parses and validates Queue, PodGroup, Job and their relatives once, at the edge, and is the source of
the CRD YAML. Decides nothing about scheduling. Imports none of our other rooms; every room that reads
or writes API objects imports this one.
"""
