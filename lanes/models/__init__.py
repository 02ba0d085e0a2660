"""Models: what `load` can turn into a model and a tokenizer ready to run."""
