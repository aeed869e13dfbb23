"""Several processes that share one model: which is which, how they start and how they end together.
No tensors."""
