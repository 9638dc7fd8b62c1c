"""The engine: a function of (cluster state, configuration, clock) to decisions.

``model`` holds the cluster as columns, ``framework`` the session and its extension points, and the
modules beside them run a cycle. Policies live in ``volcano_py.plugins`` and steps of a cycle in
``volcano_py.actions``; neither a clock nor a Kubernetes client is reached for from here.
"""
