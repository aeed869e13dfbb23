"""The memory of caches as blocks: who has which. No tensors."""
