# syntax=docker/dockerfile:1
# Base of both stages; any image with this Python and a Debian or Alpine userland under it.
ARG BASE=python:3.13-slim

# The wheel is built once, with everything that it needs, into a folder that the final stage only copies.
FROM ${BASE} AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY setup.cfg pyproject.toml README.md LICENSE ./
COPY webhook webhook
COPY certs certs
COPY leases leases
RUN python -m pip wheel --wheel-dir /wheels . \
    && python -m venv /opt/tidb-ha-webhook \
    && /opt/tidb-ha-webhook/bin/python -m pip install --no-index --find-links /wheels tidb-ha-webhook \
    && /opt/tidb-ha-webhook/bin/python -m pip uninstall --yes pip \
    && /opt/tidb-ha-webhook/bin/python -m compileall -q /opt/tidb-ha-webhook

FROM ${BASE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="tidb-ha-webhook" \
      org.opencontainers.image.description="Keeps the TiKV and PD pods of a TiDB cluster off each other's nodes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/tidb-ha-webhook /opt/tidb-ha-webhook
ENV PATH=/opt/tidb-ha-webhook/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# A number: the kubelet cannot tell of a name that it is not root.
USER 65532:65532
WORKDIR /tmp
EXPOSE 8443 8081
ENTRYPOINT ["tidb-ha-webhook"]
CMD ["serve"]
