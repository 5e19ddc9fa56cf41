// OpenAPI documents of everything served, made anew when a definition changes.
import type { Registry } from '../registry/registry.ts';

export interface OpenApi {
  /** The document at a path below /openapi; undefined when there is none. */
  readonly document: (path: string) => unknown;
}

export const createOpenApi = (_registry: Registry): OpenApi => ({ document: () => undefined });
