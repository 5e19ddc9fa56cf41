# bullion/boot-job: boots a version of a golden image by QEMU. The same bundles as bullion/functions, QEMU for x86-64 guests, and the firmware of PCs.
#   npm run build && docker build -f infra/images/boot-job.Dockerfile -t bullion/boot-job .
FROM node:24-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends qemu-system-x86 seabios ovmf \
  && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production
WORKDIR /app
COPY dist/functions/ /app/
# What V8 compiles of it at a start, for the user below.
RUN ["node", "/app/code-cache.mjs", "107", "boot-job"]
ENV NODE_COMPILE_CACHE=/app/code NODE_COMPILE_CACHE_PORTABLE=1
# QEMU's user, whom the files of a volume belong to.
USER 107:107
ENTRYPOINT ["node", "/app/start.mjs", "boot-job"]
