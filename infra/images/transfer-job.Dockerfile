# bullion/transfer-job: moves the bytes of an image. The same bundles as bullion/functions, and QEMU's tool for formats they do not read themselves.
#   npm run build && docker build -f infra/images/transfer-job.Dockerfile -t bullion/transfer-job .
FROM node:24-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends qemu-utils util-linux xz-utils zstd ca-certificates \
  && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production
WORKDIR /app
COPY dist/functions/ /app/
# What V8 compiles of it at a start, for the user below.
RUN ["node", "/app/code-cache.mjs", "107", "transfer-job"]
ENV NODE_COMPILE_CACHE=/app/code NODE_COMPILE_CACHE_PORTABLE=1
# QEMU's user, whom the files of a volume belong to.
USER 107:107
ENTRYPOINT ["node", "/app/start.mjs", "transfer-job"]
