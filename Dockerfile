# A production node: `pawl serve`, with the drivers for PostgreSQL and NATS. See compose.yaml.
FROM python:3.11-slim AS build
WORKDIR /project
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[postgres,nats]" \
  && rm -r /wheels \
  && useradd --create-home --uid 10001 pawl
USER pawl
WORKDIR /home/pawl
ENV PYTHONUNBUFFERED=1
STOPSIGNAL SIGTERM
ENTRYPOINT ["pawl"]
CMD ["serve"]
