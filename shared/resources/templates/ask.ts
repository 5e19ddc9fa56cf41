// What templates ask for, and what there is: the two sides a plan compares.
import type { DataImportCron } from '#shared/api/cdi/data-import-cron.ts';
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { BootSources } from '#shared/golden/templates/expand.ts';
import type { HyperConverged, Ssp } from '#shared/api/foreign/boot-sources.ts';

export interface TemplateSettings {
  /** `auto`: only objects that no operator works on. */
  readonly mode: 'auto' | 'serve' | 'off';
  /** Where golden images live. */
  readonly namespace: string;
  /** Of this machine, where a cluster does not say its own. */
  readonly architecture: string;
}

/** One object with templates, and what it asks for; `undefined`: it contradicts itself, and what it led to stays as it is. */
export interface TemplateRequest {
  readonly owner: ObjectRef;
  readonly wanted: BootSources | undefined;
}

export interface ObservedTemplates {
  /** Where golden images live. */
  readonly namespace: string;
  /** In that namespace, by name. */
  readonly sources: ReadonlyMap<string, DataSource>;
  /** Names of the volumes there. */
  readonly volumes: ReadonlySet<string>;
  /** By `<namespace>/<name>`: those made from templates, and whoever has the name of a wanted one. */
  readonly crons: ReadonlyMap<string, DataImportCron>;
}

export const cronKey = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `${namespace}/${name}`;

// Whether an operator works on an object with templates: then they are its own to carry out. Pure.

/** What only its operator writes. */
const hasOperator = (object: HyperConverged | Ssp): boolean =>
  (object.metadata.finalizers ?? []).some((name) => name.includes('kubevirt.io')) ||
  Object.keys(object.status ?? {}).some((field) => field !== 'dataImportSchedule' && field !== 'nodeInfo');

export const isLeft = ({ mode }: Pick<TemplateSettings, 'mode'>, object: HyperConverged | Ssp): boolean =>
  mode === 'auto' && hasOperator(object);

/** People set it while they work on what the object made. */
export const isPaused = ({ metadata }: HyperConverged | Ssp): boolean =>
  metadata.annotations?.['kubevirt.io/operator.paused'] === 'true';
