# The gateway as an image. The build is not run by the project's own tests; docker-compose.yml is checked against the
# configuration by tests/arch/test_compose.py.
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md ./
RUN python -m venv /opt/egress \
 && /opt/egress/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements.lock
COPY gateway gateway
COPY addons addons
COPY policies policies
RUN /opt/egress/bin/pip install --no-cache-dir --no-build-isolation --no-deps .

FROM python:3.13-slim
COPY --from=build /opt/egress /opt/egress
ENV PATH=/opt/egress/bin:$PATH
# Keys and evidence belong to a user that no agent runs as.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin gateway \
 && useradd --uid 10002 --create-home --shell /usr/sbin/nologin agent \
 && install -d -o gateway -m 0700 /state && install -d -o gateway -m 0755 /trust /provider
USER gateway
VOLUME ["/state"]
ENTRYPOINT ["egress"]
CMD ["up"]
