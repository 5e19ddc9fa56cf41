// Where the images of a registry are fetched from: mirrors, other locations and blocks, as an administrator writes them in `registries.conf` (version 2,
// containers-registries.conf(5)), which Podman and CRI-O read, too. Pure.
import { z } from 'zod';
import type { Reference } from '#shared/clients/registry/reference.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

const Mirror = z.object({
  location: z.string().min(1),
  insecure: z.boolean().default(false),
  'pull-from-mirror': z.enum(['all', 'digest-only', 'tag-only']).optional(),
});

const Registry = z
  .object({
    /** `host[:port][/namespace…]`, or `*.example.com`. Default: `location`. */
    prefix: z.string().optional(),
    /** Replaces the prefix. Default: `prefix`. */
    location: z.string().optional(),
    insecure: z.boolean().default(false),
    blocked: z.boolean().default(false),
    'mirror-by-digest-only': z.boolean().default(false),
    mirror: z.array(Mirror).default([]),
  })
  .refine(({ prefix, location }) => (prefix ?? location ?? '') !== '', { message: 'has neither prefix nor location' });

/** Other tables and keys of the format are of no use here, and skipped: they are about names without a registry, and about signatures. */
const RegistriesConf = z.object({
  registry: z.array(Registry).default([]),
  registries: z.undefined({ error: 'is of version 1 of the format: write [[registry]] tables' }).optional(),
});

export type RegistryRule = z.output<typeof Registry>;

/** What an operator says of registries. */
export interface RegistryAccess {
  /** As `host[:port]`: accessed without TLS. */
  readonly plainRegistries: readonly string[];
  /** Default: every registry is accessed at its own address. */
  readonly registryRules?: readonly RegistryRule[] | undefined;
  /** Why the rules cannot be read. Nothing is fetched meanwhile: one of them may block a registry. */
  readonly registryFault?: string | undefined;
}

/** `tables` as parsed from TOML. Throws InvalidInput, which says what to change. */
export const readRegistriesConf = (tables: object): readonly RegistryRule[] => {
  const { success, data, error } = RegistriesConf.safeParse(tables);
  if (success) return data.registry;
  const [issue] = error.issues;
  throw new InvalidInput(`${(issue?.path ?? []).join('.')}: ${issue?.message ?? 'is not valid'}`);
};

/** One place that an image can be fetched from. */
export interface Place {
  readonly host: string;
  readonly repository: string;
  readonly plainHttp: boolean;
}

const prefixOf = ({ prefix, location = '' }: RegistryRule): string => prefix ?? location;

/** The length of the part of `name` that the prefix stands for; `undefined`: another registry. */
const matchOf = (prefix: string, name: string): number | undefined => {
  const isEnd = (at: number): boolean => at === name.length || name[at] === '/' || name[at] === ':';
  if (!prefix.startsWith('*.')) return name.startsWith(prefix) && isEnd(prefix.length) ? prefix.length : undefined;
  const host = name.split('/')[0] ?? '';
  const at = name.indexOf(prefix.slice(1));
  const end = at + prefix.length - 1;
  return at > 0 && at < host.length && isEnd(end) ? end : undefined;
};

const placeAt = (name: string, plainHttp: boolean): Place => {
  const slash = name.indexOf('/');
  return { host: name.slice(0, slash), repository: name.slice(slash + 1), plainHttp };
};

const isHub = /^(?:index\.|registry-1\.)?docker\.io$/;

/** Mirrors in their order, then the registry itself. Throws InvalidInput if an administrator blocked it. */
export const placesOf = (image: Reference, access: RegistryAccess): readonly Place[] => {
  const { plainRegistries, registryRules = [], registryFault } = access;
  if (registryFault !== undefined) throw new InvalidInput(registryFault);
  const name = `${isHub.test(image.host) ? 'docker.io' : image.host}/${image.repository}`;
  const [best] = registryRules
    .flatMap((rule) => {
      const matched = matchOf(prefixOf(rule), name);
      return matched === undefined ? [] : [{ rule, matched }];
    })
    .toSorted((one, other) => prefixOf(other.rule).length - prefixOf(one.rule).length);
  const own = { host: image.host, repository: image.repository, plainHttp: plainRegistries.includes(image.host) };
  if (best === undefined) return [own];
  const { rule, matched } = best;
  if (rule.blocked) throw new InvalidInput(`${name} is blocked by registries.conf (${prefixOf(rule)})`);
  const at = (location: string, insecure: boolean): Place => {
    const place = placeAt(location + name.slice(matched), insecure);
    return plainRegistries.includes(place.host) ? { ...place, plainHttp: true } : place;
  };
  const isDigest = image.digest !== undefined;
  const mirrors = rule.mirror.filter((mirror) => {
    const takes = rule['mirror-by-digest-only'] ? 'digest-only' : (mirror['pull-from-mirror'] ?? 'all');
    return takes === 'all' || takes === (isDigest ? 'digest-only' : 'tag-only');
  });
  return [
    ...mirrors.map(({ location, insecure }) => at(location, insecure)),
    rule.location === undefined || rule.location === prefixOf(rule)
      ? { ...own, plainHttp: own.plainHttp || rule.insecure }
      : at(rule.location, rule.insecure),
  ];
};
