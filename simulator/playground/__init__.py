"""A whole cluster on one machine, for trying."""
