// Patches as kustomize takes them. Called by the builders of overlays and components.
import { stringify } from 'yaml';

/** A patch of every object of a kind, or of the one with this name. */
export const patch = (kind: string, name: string | undefined, body: object): object => ({
  target: { kind, ...(name === undefined ? {} : { name }) },
  patch: stringify(body, { lineWidth: 0 }),
});

/** A step of a JSON patch. */
export const add = (path: string, value: unknown): object => ({ op: 'add', path, value });
