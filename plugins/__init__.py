"""Policies, one a file: who goes first, what fits where, who owes capacity to whom.

A plugin registers functions at the extension points of ``scheduler.framework`` and reads
``scheduler.model``. Plugins do not import one another and never speak to Kubernetes.
"""
