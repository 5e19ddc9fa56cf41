# bullion/transfer-job: moves the bytes of an image. The same bundles as bullion/functions, and QEMU's tool for formats they do not read themselves.
#   npm run build && docker build -f infra/images/transfer-job.Dockerfile -t bullion/transfer-job .
FROM node:24-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends qemu-utils util-linux xz-utils zstd ca-certificates \
  && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production
WORKDIR /app
COPY dist/functions/ /app/
# QEMU's user, whom the files of a volume belong to.
USER 107:107
ENTRYPOINT ["node", "/app/start.mjs", "transfer-job"]
