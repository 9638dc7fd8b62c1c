"""The edge of the model: core Kubernetes objects as plain data, checked once and then trusted."""
