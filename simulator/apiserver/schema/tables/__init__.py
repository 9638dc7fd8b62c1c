"""What ``kubectl get`` prints: the server turns objects into rows."""
