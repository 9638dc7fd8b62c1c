"""An API server for trying and testing: no etcd, no cluster."""
