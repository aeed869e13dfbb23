"""An answer as it is written: `python examples/generate.py [HOST:PORT]`, with `uag up` running.

`pip install .` is all that it needs; the models and torch stay with the services.
"""

import sys

from orchestrator.client import Client, ClientError, chat

address = sys.argv[1] if len(sys.argv) > 1 else "localhost:50050"
question = chat("Why is the sky blue?", system="Answer in one sentence.")
try:
    with Client(address, timeout=60) as client:
        stream = client.generate(question, max_new_tokens=40, temperature=0.7, seed=1, stop="\n\n")
        for delta in stream:
            print(delta.text, end="", flush=True)
except (ClientError, ValueError) as error:
    sys.exit(str(error))
finished = stream.finished()
print(f"\n[{finished.usage.completion_tokens} tokens, ended by {finished.reason.value}]")
