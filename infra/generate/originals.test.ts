// Our CRDs accept what those of the originals accept: for every field of an original, an object with that field and the fields it requires is sent to an
// API server that rejects unknown fields. The CRDs of the originals are next to the repository during development, never in it.
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { buildCrd } from '#infra/generate/crd.ts';
import { type ApiServerHandle, startApiServer } from '#local-cluster/api.ts';
import { freePorts } from '#local-cluster/free-ports.ts';
import { installCrds } from '#local-cluster/install.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import { servedKinds, reportedKinds } from '#shared/api/kinds.ts';
import { type KubeObject, apiVersionOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { presentApiServers } from '#test/support/api-server-kind.ts';
import { findShared } from '#test/support/shared-folder.ts';

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly format?: string;
  readonly pattern?: string;
  readonly 'x-kubernetes-int-or-string'?: boolean;
}
interface Column {
  readonly name: string;
}
interface OriginalCrd {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    /** v1beta1 has one schema for all versions. */
    readonly validation?: { readonly openAPIV3Schema: Schema };
    readonly additionalPrinterColumns?: readonly Column[];
    readonly versions: readonly {
      readonly schema?: { readonly openAPIV3Schema: Schema };
      readonly additionalPrinterColumns?: readonly Column[];
    }[];
  };
}

const originals = ['harvester', 'hypercloud', 'cdi'].flatMap((name) => {
  const folder = findShared(`crds/${name}`);
  return folder === undefined
    ? []
    : readdirSync(folder).map((file) => parse(readFileSync(join(folder, file), 'utf8')) as OriginalCrd);
});

const samples = findShared('examples') ?? '';
const examples = (samples === '' ? [] : readdirSync(samples))
  .filter((file) => file.endsWith('.yaml'))
  .flatMap((file) =>
    parseAllDocuments(readFileSync(join(samples, file), 'utf8')).map((document) => ({
      file,
      object: document.toJS() as KubeObject,
    })),
  );

const originalOf = ({ type }: ServedKind): OriginalCrd | undefined =>
  originals.find(({ spec }) => spec.group === type.group && spec.names.kind === type.kind);

/** In small letters: some shout. */
const columnsOf = (original: OriginalCrd | undefined): readonly string[] => {
  const { versions = [], additionalPrinterColumns = [] } = original?.spec ?? {};
  return (versions[0]?.additionalPrinterColumns ?? additionalPrinterColumns).map(({ name }) => name.toLowerCase());
};

/** A kind that was designed and never released has no original. */
const kinds = [...servedKinds, ...reportedKinds];
const pairs = kinds.flatMap((kind) => {
  const original = originalOf(kind);
  return original === undefined ? [] : [{ kind, original }];
});
const schemaOf = ({ spec }: OriginalCrd): Schema =>
  spec.validation?.openAPIV3Schema ?? spec.versions[0]?.schema?.openAPIV3Schema ?? {};

/** Plain strings in an original whose consumer accepts only a few values. */
const words: Readonly<Record<string, unknown>> = {
  accessModes: 'ReadWriteOnce',
  volumeMode: 'Block',
  status: 'True',
  state: 'Creating',
  garbageCollect: 'Outdated',
  operator: 'Exists',
};

/** A value of the schema with the fields it must have and no others. */
const least = (schema: Schema, field = ''): unknown => {
  if (schema['x-kubernetes-int-or-string'] === true) return '1Gi';
  if (schema.enum !== undefined) return schema.enum[0];
  return leastOf[schema.type ?? '']?.(schema) ?? textOf(schema, field);
};

const textOf = ({ format, pattern = '' }: Schema, field: string): unknown =>
  format === 'date-time'
    ? '2026-01-01T00:00:00Z'
    : (words[field] ?? ['text', '0.06'].find((text) => new RegExp(pattern).test(text)) ?? 'text');

const leastOf: Readonly<Record<string, (schema: Schema) => unknown>> = {
  object: ({ required = [], properties = {} }) =>
    Object.fromEntries(required.map((name) => [name, least(properties[name] ?? {}, name)])),
  array: () => [],
  integer: ({ minimum = 1 }) => minimum,
  number: ({ minimum = 1 }) => minimum,
  boolean: () => true,
};

interface Leaf {
  readonly path: string;
  /** The value of the requested schema, with this leaf in it. */
  readonly value: unknown;
}

const within = (value: unknown, name: string, inner: unknown): unknown => ({ ...(value as object), [name]: inner });

/** One value for each field below, each with the siblings that it requires. */
const leavesOf = (schema: Schema, path: string, field = ''): readonly Leaf[] => {
  const { properties = {}, items, additionalProperties } = schema;
  const below = Object.entries(properties).flatMap(([name, inner]) =>
    leavesOf(inner, `${path}.${name}`, name).map((leaf) => ({
      path: leaf.path,
      value: within(least(schema), name, leaf.value),
    })),
  );
  if (below.length > 0) return below;
  if (items !== undefined) {
    return leavesOf(items, `${path}[]`, field).map((leaf) => ({ path: leaf.path, value: [leaf.value] }));
  }
  if (typeof additionalProperties === 'object') {
    return leavesOf(additionalProperties, `${path}.*`, field).map((leaf) => ({
      path: leaf.path,
      value: { storage: leaf.value },
    }));
  }
  return [{ path, value: least(schema, field) }];
};

/** Fields of which exactly one must be set: the default for those whose leaf is none of them. */
const choices: Readonly<
  Record<string, { readonly at: string; readonly oneOf: readonly string[]; readonly else: object }>
> = {
  'VirtualMachineImage.hypercloud.tmaxanc.com': {
    at: 'source',
    oneOf: ['http', 'hostPath'],
    else: { http: 'https://a/b' },
  },
  'VirtualMachineVolumeExport.hypercloud.tmaxanc.com': {
    at: 'destination',
    oneOf: ['local', 's3'],
    else: { local: {} },
  },
};

const withChoice = (kind: ServedKind, spec: unknown): unknown => {
  const choice = choices[`${kind.type.kind}.${kind.type.group}`];
  if (choice === undefined) return spec;
  const chosen = (spec as Record<string, object | undefined>)[choice.at] ?? {};
  return choice.oneOf.some((name) => name in chosen) ? spec : within(spec, choice.at, choice.else);
};

interface Made {
  readonly path: string;
  readonly object: KubeObject;
}

const objectsOf = (kind: ServedKind, original: OriginalCrd): readonly Made[] => {
  const { spec = { type: 'object' }, status } = schemaOf(original).properties ?? {};
  const base = {
    apiVersion: apiVersionOf(kind.type),
    kind: kind.type.kind,
    metadata: { name: 'one', ...(kind.type.namespaced ? { namespace: 'default' } : {}) },
  };
  const plain = withChoice(kind, least(spec));
  return [
    ...leavesOf(spec, 'spec').map(({ path, value }) => ({ path, object: { ...base, spec: withChoice(kind, value) } })),
    ...(status === undefined ? [] : leavesOf(status, 'status')).map(({ path, value }) => ({
      path,
      object: { ...base, spec: plain, status: value },
    })),
  ];
};

describe.skipIf(pairs.length === 0).each(presentApiServers)(
  'manifests of the originals are accepted on the %s API server',
  (server) => {
    let dataDir: string;
    let api: ApiServerHandle;
    let kube: KubeClient;
    beforeAll(async () => {
      dataDir = mkdtempSync(join(tmpdir(), 'bullion-originals-'));
      const [port = 0] = await freePorts(1);
      api = await startApiServer(server, { dataDir, port, environment: process.env });
      kube = createKubeClient(loadKubeConfig(api.kubeconfigPath));
      await installCrds(
        kube,
        kinds.map((kind) => buildCrd(kind) as unknown as KubeObject),
      );
    });
    afterAll(async () => {
      await api?.close();
      rmSync(dataDir, { recursive: true, force: true });
    });

    const send = async (kind: ServedKind, object: object): Promise<string | undefined> => {
      const { group, version, plural, namespaced } = kind.type;
      const path = `/apis/${group}/${version}/${namespaced ? 'namespaces/default/' : ''}${plural}`;
      const query = 'dryRun=All&fieldValidation=Strict';
      try {
        await kube.raw({ method: 'POST', path: `${path}?${query}`, body: object });
        return undefined;
      } catch (error) {
        return (error as Error).message;
      }
    };

    it.each(pairs.map((pair) => [pair.kind.type.group, pair.kind.type.kind, pair] as const))(
      '%s %s: every field separately',
      async (_group, _kind, { kind, original }) => {
        const made = objectsOf(kind, original);
        expect(made.length).toBeGreaterThan(3);
        const refused: string[] = [];
        for (const { path, object } of made) {
          const said = await send(kind, object);
          if (said !== undefined) refused.push(`${path}: ${said}`);
        }
        expect(refused).toEqual([]);
      },
    );

    it('accepts every example manifest of users', async () => {
      const refused: string[] = [];
      for (const { file, object } of examples) {
        const kind = servedKinds.find(
          ({ type }) => apiVersionOf(type) === object.apiVersion && type.kind === object.kind,
        );
        const said = kind === undefined ? undefined : await send(kind, { ...object, metadata: { name: 'one' } });
        if (said !== undefined) refused.push(`${file}: ${said}`);
      }
      expect(refused).toEqual([]);
      expect(examples.length).toBeGreaterThan(8);
    });

    it('rejects unknown fields', async () => {
      const [{ kind, original }] = pairs as [(typeof pairs)[number]];
      const [{ object }] = objectsOf(kind, original) as [Made];
      expect(await send(kind, { ...object, spec: { ...(object as { spec?: object }).spec, orphan: 1 } })).toMatch(
        /orphan/,
      );
    });
  },
);

/** What a class is good for is neither ready nor failed. */
const hasReady = ({ type }: ServedKind): boolean => type.kind !== 'StorageProfile';

describe('columns', () => {
  it.each(servedKinds.map((kind) => [kind.type.group, kind.type.kind, kind] as const))(
    'of %s %s show readiness, progress, reason and age, in this order unless the original has another',
    (_group, _kind, kind) => {
      const shown = kind.columns.filter(({ priority = 0 }) => priority === 0).map(({ name }) => name);
      const theirs = columnsOf(originalOf(kind));
      const wanted = [
        ...(hasReady(kind) ? ['Ready'] : []),
        ...('progress' in kind.status.shape ? ['Progress'] : []),
        ...(hasReady(kind) ? ['Reason'] : []),
        'Age',
      ];
      expect(shown).toEqual(expect.arrayContaining(wanted));
      if (originals.length === 0) return;
      const ours = shown.filter((name) => !theirs.includes(name.toLowerCase()));
      expect(ours.filter((name) => wanted.includes(name))).toEqual(wanted.filter((name) => ours.includes(name)));
    },
  );
});

describe.skipIf(pairs.length === 0)('columns', () => {
  it.each(pairs.map((pair) => [pair.kind.type.group, pair.kind.type.kind, pair] as const))(
    'of %s %s start with those of the original',
    (_group, _kind, { kind, original }) => {
      const theirs = columnsOf(original);
      expect(kind.columns.map(({ name }) => name.toLowerCase()).slice(0, theirs.length)).toEqual(theirs);
    },
  );
});
