"""What the quota library costs per call, against the stub driver."""
