# bullion/functions: every function, started by its name. Build context: the root of the repository, after `npm ci`.
#   npm run build && docker build -f infra/images/functions.Dockerfile -t bullion/functions .
FROM node:24-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY dist/functions/ /app/
USER 65532:65532
ENTRYPOINT ["node", "/app/start.mjs"]
