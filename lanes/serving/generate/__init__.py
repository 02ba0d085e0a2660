"""Text over HTTP: a request is read into a stream of the engine, and what it says is written in the form asked for."""
