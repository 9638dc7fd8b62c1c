"""Pretend kubelets: they run pods by script."""
