"""The only room that talks to the API server: objects in, binds, evictions and statuses out."""
