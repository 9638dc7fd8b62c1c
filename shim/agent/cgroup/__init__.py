"""Containers as the host's kernel knows them: which process is whose, stopping and ending, device files."""
