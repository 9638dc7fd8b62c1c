"""What our components cost on a real kube-apiserver: binds, a start with many pods, idling, latency."""
