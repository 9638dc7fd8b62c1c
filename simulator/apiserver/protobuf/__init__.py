"""Bodies in Kubernetes' protobuf encoding, which ``kubectl create`` and typed Go clients send."""
