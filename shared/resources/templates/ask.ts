// The requests of templates and the existing objects: the two sides that a plan compares.
import type { DataImportCron } from '#shared/api/cdi/data-import-cron.ts';
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { BootSources } from '#shared/golden/templates/expand.ts';
import type { HyperConverged, Ssp } from '#shared/api/foreign/boot-sources.ts';

export interface TemplateSettings {
  /** `auto`: only objects without an operator. */
  readonly mode: 'auto' | 'serve' | 'off';
  /** Default namespace of golden images. */
  readonly namespace: string;
  /** Architecture of this machine, if the cluster does not define its own. */
  readonly architecture: string;
}

/** An object with templates, and its requests; `undefined`: they contradict each other, and existing objects are left unchanged. */
export interface TemplateRequest {
  readonly owner: ObjectRef;
  readonly wanted: BootSources | undefined;
}

export interface ObservedTemplates {
  /** Namespace of golden images. */
  readonly namespace: string;
  /** In that namespace, by name. */
  readonly sources: ReadonlyMap<string, DataSource>;
  /** Names of the volumes there. */
  readonly volumes: ReadonlySet<string>;
  /** By `<namespace>/<name>`: those made from templates, and those with the name of a requested one. */
  readonly crons: ReadonlyMap<string, DataImportCron>;
}

export const cronKey = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `${namespace}/${name}`;

// Whether an operator handles an object with templates: then they are left to it. Pure.

/** Fields that only its operator writes. */
const hasOperator = (object: HyperConverged | Ssp): boolean =>
  (object.metadata.finalizers ?? []).some((name) => name.includes('kubevirt.io')) ||
  Object.keys(object.status ?? {}).some((field) => field !== 'dataImportSchedule' && field !== 'nodeInfo');

export const isLeft = ({ mode }: Pick<TemplateSettings, 'mode'>, object: HyperConverged | Ssp): boolean =>
  mode === 'auto' && hasOperator(object);

/** Set by users while they change objects of the operator. */
export const isPaused = ({ metadata }: HyperConverged | Ssp): boolean =>
  metadata.annotations?.['kubevirt.io/operator.paused'] === 'true';
