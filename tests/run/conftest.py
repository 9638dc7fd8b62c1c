"""The servers and clusters of the end-to-end cases, for what only a real process shows."""

from tests.e2e.conftest import cluster, memory_folder, server

__all__ = ["cluster", "memory_folder", "server"]
