"""Benchmarks: known cluster shapes through the engine, each measured in a process of its own.

``shapes`` reads what there is, ``manifests`` writes the objects, ``course`` says what is loaded before and
what is measured, ``measure`` runs one course here, ``child`` does so in a fresh process, ``runs`` starts
those and takes medians and exponents, ``report`` shows them.
"""
