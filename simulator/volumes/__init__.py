"""A pretend volume controller: it makes volumes for claims and binds the two."""
