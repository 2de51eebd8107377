# Groundnote with the packaged embedding model. Needs no network at run time, writes only /data and /tmp:
# For one person, at http://127.0.0.1:8000 (for more see auth.mode; compose.yaml has tokens):
#   docker run --read-only --tmpfs /tmp -v groundnote:/data -p 127.0.0.1:8000:8000 -e GROUNDNOTE_AUTH__ALLOW_PUBLIC=true groundnote
# A digest behind the name pins the very image: --build-arg PYTHON=python:3.11.14-slim-bookworm@sha256:…
ARG PYTHON=python:3.11.14-slim-bookworm
FROM ${PYTHON} AS build
# Other models than the packaged one run in PyTorch. A build for processors is a tenth in size: the version's "+cpu" fits no other, and
# --build-arg TORCH_INDEX_URL=… names the index that has it (PyTorch's own page tells which).
ARG TORCH_INDEX_URL
WORKDIR /build
RUN python -m venv /opt/groundnote
ENV PATH=/opt/groundnote/bin:$PATH PIP_NO_CACHE_DIR=1
COPY requirements-server.lock ./
RUN pip install --no-deps --require-hashes --requirement requirements-server.lock \
 && pip install --no-deps --index-url "${TORCH_INDEX_URL:?name an index with PyTorch for processors}" torch==2.13.0+cpu
COPY pyproject.toml README.md LICENSE ./
COPY rag rag
COPY groundnote groundnote
COPY templates templates
COPY static static
COPY data data
RUN pip install --no-deps --no-build-isolation .

FROM ${PYTHON}
RUN useradd --uid 10001 --create-home groundnote && install -d -o groundnote -m 0700 /data /shared/tables /shared/originals
COPY --from=build /opt/groundnote /opt/groundnote
USER groundnote
WORKDIR /data
ENV PATH=/opt/groundnote/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    GROUNDNOTE_DATA_DIR=/data \
    GROUNDNOTE_WEB__HOST=0.0.0.0 \
    GROUNDNOTE_WEB__ALLOWED_HOSTS='["localhost"]'
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=5)"]
CMD ["groundnote", "serve"]
