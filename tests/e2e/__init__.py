"""End-to-end tests: a real etcd, API server, controller manager and scheduler, with nodes that kwok plays."""
