"""The cluster as columns: resources, tasks, task classes, jobs, queues, nodes and cards.

Holds state and the undo log that every change goes through; takes no decision. Imports ``crds`` only;
``scheduler.framework``, plugins and actions read it.
"""
