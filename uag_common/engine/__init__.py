"""The inference engine: the one place with torch and transformers."""
