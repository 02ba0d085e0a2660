"""Bodies as schemas: what each endpoint takes and gives, and what it refuses. Nothing here knows an engine."""
