"""What `lanes demo`, `lanes bench` and the programs in benchmarks/ measure: prompts, workloads, figures, arms."""
