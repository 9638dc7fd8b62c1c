"""A small controller manager: Jobs, ReplicaSets, Deployments, and pods whose node is gone."""
