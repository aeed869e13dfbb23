"""Which tokens are guessed in a round, by whom, and how many: planned by what was measured."""
