"""Controllers: what the cluster should hold besides what people and the scheduler write.

``podgroup/`` makes a PodGroup for pods that have none; ``queue/`` opens and closes queues, counts their
groups and carries out Commands. Each decides as a pure function of what was observed (``observed.py``) which
acts are wanted (``acts.py``). ``reconciler.py`` carries them out and asks again until nothing is wanted; kopf
only watches (``watching.py``); ``operator.py`` puts it together. A further controller is a further folder.
"""
