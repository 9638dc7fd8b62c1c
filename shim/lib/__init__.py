"""The quota library in C, and what generates its hooks, tests and tables from one list of symbols."""
