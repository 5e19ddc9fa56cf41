// HyperConverged and SSP: the fields with the golden images of a cluster. Read only, except for the generated schedule of a HyperConverged.
import type { DataImportCronSpec } from '#shared/api/cdi/data-import-cron.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import type { Condition, KubeObject, ResourceType } from '#shared/api/object.ts';

// The object of an installed CDI, which its operator creates or reads. Only its existence matters.

export const cdis: ResourceType<KubeObject> = {
  group: cdiGroup,
  version: 'v1beta1',
  kind: 'CDI',
  plural: 'cdis',
  namespaced: false,
};

/** One entry of a list of templates; `spec` may lack required fields of the resulting object. */
export interface CronTemplateEntry {
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: Partial<DataImportCronSpec>;
}

/** v1 has `workloadSources`; v1beta1 has the same fields one level up, and older ones in `featureGates`. */
interface BootImageSettings {
  readonly enableCommonBootImageImport?: boolean;
  readonly dataImportCronTemplates?: readonly CronTemplateEntry[];
  readonly commonBootImageNamespace?: string;
  readonly enableMultiArchBootImageImport?: boolean;
}

export interface HyperConverged extends KubeObject {
  readonly spec?: BootImageSettings & {
    readonly workloadSources?: BootImageSettings;
    readonly featureGates?: Readonly<Record<string, unknown>>;
  };
  readonly status?: {
    readonly dataImportSchedule?: string;
    readonly nodeInfo?: {
      readonly controlPlaneArchitectures?: readonly string[];
      readonly workloadsArchitectures?: readonly string[];
    };
    readonly conditions?: readonly Condition[];
  };
}

/** The templates are in `commonTemplates`, or in `spec` itself, as in its design document. */
export interface Ssp extends KubeObject {
  readonly spec?: {
    readonly commonTemplates?: { readonly dataImportCronTemplates?: readonly CronTemplateEntry[] };
    readonly enableMultipleArchitectures?: boolean;
    readonly cluster?: {
      readonly controlPlaneArchitectures?: readonly string[];
      readonly workloadArchitectures?: readonly string[];
    };
  };
  readonly status?: { readonly phase?: string; readonly operatorVersion?: string };
}

export const hyperConvergeds: ResourceType<HyperConverged> = {
  group: 'hco.kubevirt.io',
  version: 'v1beta1',
  kind: 'HyperConverged',
  plural: 'hyperconvergeds',
  namespaced: true,
};

export const ssps: ResourceType<Ssp> = {
  group: 'ssp.kubevirt.io',
  version: 'v1beta3',
  kind: 'SSP',
  plural: 'ssps',
  namespaced: true,
};

/** Newest first: older operators serve only the older ones. */
export const sspVersions = ['v1beta3', 'v1beta2', 'v1beta1'] as const;
