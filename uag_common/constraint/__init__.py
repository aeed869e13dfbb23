"""What an answer must look like: which tokens may come next under a JSON schema, a regular
expression, a choice of texts or a grammar. llguidance knows the languages; it stands here alone."""
