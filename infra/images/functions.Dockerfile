# bullion/functions: every function, started by its name. Build context: the root of the repository, after `npm ci`.
#   npm run build && docker build -f infra/images/functions.Dockerfile -t bullion/functions .
FROM node:24-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY dist/functions/ /app/
# What V8 compiles of it at a start, for the user below.
RUN ["node", "/app/code-cache.mjs", "65532", "backup-metadata", "console", "cron-tick", "import-object", "initialize", "metrics", "mutate", "sidecar-sync", "single", "transfer", "validate"]
ENV NODE_COMPILE_CACHE=/app/code NODE_COMPILE_CACHE_PORTABLE=1
USER 65532:65532
ENTRYPOINT ["node", "/app/start.mjs"]
