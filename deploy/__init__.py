"""What installs volcano-py into a cluster.

The rights of each component (``rbac/``), their Deployments (``components/``), and all of it with the CRDs in
one file, ``install.yaml``, which ``generate`` writes. A chart, dashboards and alert rules will live here
too. It imports the API types alone, and no room imports it.
"""
