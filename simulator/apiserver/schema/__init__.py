"""What objects may say: built-in kinds, CustomResourceDefinitions, discovery, OpenAPI, tables."""
