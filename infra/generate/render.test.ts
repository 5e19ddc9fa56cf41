// The released files and the chart against kustomize: the same objects, whichever way a cluster gets them. Needs kubectl, and helm for the chart.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { chartOutputs } from '#infra/generate/chart.ts';
import { imageNames } from '#infra/generate/wiring.ts';
import { kustomizeOutputs } from '#infra/generate/kustomize.ts';
import type { GeneratedManifest } from '#infra/generate/manifest.ts';
import { manifestOutputs } from '#infra/generate/outputs.ts';
import {
  type ComponentName,
  type ShapeName,
  buildRelease,
  componentNames,
  renderShape,
  shapes,
} from '#infra/generate/render.ts';
import { findHelm } from '#local-cluster/envtest/helm/assets.ts';
import { release, systemNamespace } from '#shared/api/names.ts';
import { infraDir, renderText } from '#test/support/overlay.ts';
import { hasKubectl } from '#test/support/tools.ts';

const manifests = manifestOutputs();
const outputs = { ...manifests, ...kustomizeOutputs(manifests) };
const shapeNames = Object.keys(shapes) as readonly ShapeName[];
const sets: readonly (readonly ComponentName[])[] = [[], ...componentNames.map((name) => [name]), componentNames];
const cases = shapeNames.flatMap((shape) => sets.map((components) => [shape, components] as const));

const keyOf = ({ apiVersion, kind, metadata: { name, namespace = '' } }: GeneratedManifest): string =>
  `${apiVersion} ${kind} ${namespace}/${name}`;
const byKey = (objects: readonly GeneratedManifest[]): Readonly<Record<string, GeneratedManifest>> =>
  Object.fromEntries(objects.map((object) => [keyOf(object), object]));
const parse = (text: string): readonly GeneratedManifest[] =>
  parseAllDocuments(text).flatMap((document) => {
    expect(document.errors).toEqual([]);
    return (document.toJS() as GeneratedManifest | null) ?? [];
  });

const folders: string[] = [];
afterAll(() => folders.forEach((dir) => rmSync(dir, { recursive: true })));

const registry = 'registry.example:5000/team/bullion';
const kustomized = (shape: ShapeName, components: readonly ComponentName[], more: object = {}) => {
  const dir = mkdtempSync(join(tmpdir(), 'bullion-render-'));
  folders.push(dir);
  const root = join(infraDir, '..');
  const content = {
    resources: [relative(dir, join(root, shapes[shape].folder))],
    components: components.map((name) => relative(dir, join(infraDir, 'components', shapes[shape].components[name]))),
    ...more,
  };
  writeFileSync(join(dir, 'kustomization.yaml'), JSON.stringify(content));
  return parse(renderText(dir));
};
const images = {
  images: imageNames.map((name) => ({
    name: `bullion/${name}`,
    newName: `${registry}/${name}`,
    newTag: 'v7',
  })),
};

describe.skipIf(!hasKubectl())('our own rendering', () => {
  it.each(cases)('of %s with %j is that of kustomize', (shape, components) => {
    expect(byKey(renderShape(outputs, shape, components))).toEqual(byKey(kustomized(shape, components)));
  });

  it.each(shapeNames)('the released file of %s is what kustomize makes with the same registry and tag', (shape) => {
    expect(byKey(parse(buildRelease(shape, { registry, tag: 'v7' })))).toEqual(byKey(kustomized(shape, [], images)));
  });

  it.each(shapeNames)('the released file of %s can be applied from its beginning to its end', (shape) => {
    const objects = parse(buildRelease(shape, { registry: 'bullion', tag: release }));
    const at = (kind: string) => objects.findIndex((object) => object.kind === kind);
    const ends = (kind: string) => objects.findLastIndex((object) => object.kind === kind);
    expect(at('Namespace')).toBe(0);
    expect(ends('CustomResourceDefinition')).toBeLessThan(at('ServiceAccount'));
    expect(ends('ServiceAccount')).toBeLessThan(at('Deployment'));
    // Webhooks of a Service that is not there yet would refuse what follows.
    expect(at('ValidatingWebhookConfiguration')).toBeGreaterThan(objects.length - 3);
  });
});

describe('the chart', () => {
  it('is up to date', () => {
    for (const [path, text] of Object.entries(chartOutputs(outputs)))
      expect(readFileSync(join(infraDir, '..', path), 'utf8') === text, `${path}: run npm run gen`).toBe(true);
  });
});

const helm = findHelm(process.env);
if (helm === undefined) console.warn('the chart is not rendered: npm run envtest:helm builds helm');

describe.skipIf(helm === undefined || !hasKubectl())('the chart, rendered by helm', { timeout: 60_000 }, () => {
  const template = (values: object): string => {
    const dir = mkdtempSync(join(tmpdir(), 'bullion-values-'));
    folders.push(dir);
    writeFileSync(join(dir, 'values.yaml'), JSON.stringify(values));
    const args = ['template', 'bullion', join(infraDir, 'chart'), '--values', join(dir, 'values.yaml')];
    const { status, stdout, stderr } = spawnSync(helm!, args, { encoding: 'utf8', maxBuffer: 2 ** 26 });
    if (status !== 0) throw new Error(stderr);
    return stdout;
  };
  /** Without what keeps the kinds when the chart is uninstalled. */
  const helmed = (values: object): readonly GeneratedManifest[] =>
    parse(template(values)).map((object) => {
      if (object.kind !== 'CustomResourceDefinition') return object;
      const { 'helm.sh/resource-policy': policy, ...annotations } = object.metadata.annotations ?? {};
      expect({ object, policy }).toEqual({ object, policy: 'keep' });
      const { annotations: _, ...metadata } = object.metadata;
      return { ...object, metadata: Object.keys(annotations).length === 0 ? metadata : { ...metadata, annotations } };
    });
  const chosen = (components: readonly ComponentName[]) => ({
    components: Object.fromEntries(componentNames.map((name) => [name, components.includes(name)])),
  });

  it.each(cases)('as %s with %j has the objects of kustomize', (shape, components) => {
    expect(byKey(helmed({ shape, ...chosen(components) }))).toEqual(byKey(kustomized(shape, components)));
  });

  it.each(shapeNames)('names registry and tag of %s in one place', (shape) => {
    expect(byKey(helmed({ shape, registry, tag: 'v7' }))).toEqual(byKey(kustomized(shape, [], images)));
  });

  it.each(shapeNames)('scales admission of %s, and starts pods again when settings change', (shape) => {
    const settings = { PUBLIC_URL: 'https://images.example', UPLOAD_IDLE_SECONDS: 60, CDI: 'serve' };
    const objects = helmed({ shape, replicas: 3, settings });
    const { data } = objects.find(
      ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'bullion-settings',
    )!;
    expect(data).toEqual({ PUBLIC_URL: 'https://images.example', UPLOAD_IDLE_SECONDS: '60', CDI: 'serve' });
    const workload = (name: string) =>
      objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name) as unknown as {
        readonly spec: { readonly replicas: number };
      };
    expect(workload(shape === 'single' ? 'bullion' : 'admission').spec.replicas).toBe(3);
    const sums = (text: string) => [...text.matchAll(/checksum\/settings: (\w+)/g)].map(([, sum]) => sum);
    const [before, after] = [settings, { ...settings, CDI: 'use' }].map((some) =>
      sums(template({ shape, settings: some })),
    );
    expect(before!.length).toBeGreaterThan(0);
    expect(new Set(before).size).toBe(1);
    expect(after).toHaveLength(before!.length);
    expect(after![0]).not.toBe(before![0]);
  });

  it('leaves the namespace to who creates it', () => {
    const names = helmed({ createNamespace: false }).filter(({ kind }) => kind === 'Namespace');
    expect(names).toEqual([]);
    expect(
      helmed({})
        .filter(({ kind }) => kind === 'Namespace')
        .map(({ metadata }) => metadata.name),
    ).toEqual([systemNamespace]);
  });

  it.each([
    ['an unknown value', { replica: 2 }],
    ['an unknown shape', { shape: 'double' }],
    ['an unknown component', { components: { consol: true } }],
    ['no replica', { replicas: 0 }],
  ])('refuses %s', (_, values) => {
    expect(() => template(values)).toThrow(/schema/);
  });
});
