"""The run loop: cycles, leadership, configuration, metrics, the journal."""
