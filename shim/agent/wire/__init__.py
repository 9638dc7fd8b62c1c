"""What is spoken over unix sockets with the kubelet: messages and services."""
