# Build: docker build -t loupe .     Try: docker run --rm loupe demo
# Your folder: docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" loupe run scans -e tesseract
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY LICENSES LICENSES
COPY src src
RUN python -m venv /usr/local/loupe \
    && /usr/local/loupe/bin/pip install --no-cache-dir ".[rapidocr,data,web]"

FROM python:3.13-slim
# Versions of Debian packages are those of the image's release: a pinned one is gone after the next update.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends tesseract-ocr \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 loupe \
    && install -d -o loupe -g loupe /work
COPY --from=build /usr/local/loupe /usr/local/loupe
ENV PATH=/usr/local/loupe/bin:$PATH
USER 1000
WORKDIR /work
ENTRYPOINT ["loupe"]
CMD ["demo"]
