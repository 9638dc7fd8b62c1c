"""What installs volcano-py into a cluster.

Empty for now: the Helm chart, the image, RBAC, dashboards and alert rules will live here. It imports
no other room, and none imports it.
"""
