"""Jobs, ReplicaSets and Deployments for servers that have no controller manager."""
