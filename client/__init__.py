"""How to reach an API server: configuration, identity, requests and what went wrong with them."""
