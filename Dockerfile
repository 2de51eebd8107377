# Groundnote with the packaged embedding model. Needs no network at run time, writes only /data and /tmp:
#   docker run --read-only --tmpfs /tmp -v groundnote:/data -p 8000:8000 groundnote
FROM python:3.11-slim AS build
WORKDIR /build
RUN python -m venv /opt/groundnote
COPY pyproject.toml README.md app.py ./
COPY rag rag
COPY templates templates
COPY static static
COPY data data
# PyTorch converts the model once; the build for processors is a tenth of the other in size.
RUN /opt/groundnote/bin/pip install --no-cache-dir ".[postgresql]"

FROM python:3.11-slim
RUN useradd --uid 10001 --create-home groundnote && install -d -o groundnote -m 0700 /data
COPY --from=build /opt/groundnote /opt/groundnote
USER groundnote
WORKDIR /data
ENV PATH=/opt/groundnote/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    GROUNDNOTE_DATA_DIR=/data \
    GROUNDNOTE_WEB__HOST=0.0.0.0
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=5)"]
CMD ["groundnote", "serve"]
