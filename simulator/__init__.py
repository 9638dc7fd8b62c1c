"""A cluster without machines: published traces and manifests run through the real engine.

Holds workloads, virtual time and the measures of an experiment. It decides nothing itself: every
placement is the engine's, so what is simulated is what a cluster would do.
"""
