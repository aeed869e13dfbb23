"""How a pair is measured: what is asked in which order, what came of it, and what it means.

Plain values and the client for applications. It must not know the services, a model, a terminal
that shows progress, or torch: who is measured is handed in as a function.
"""
