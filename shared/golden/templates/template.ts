// A template of a cron, whichever object it came from, and the words that go with it.
import type { DataImportCronSpec } from '#shared/api/cdi/data-import-cron.ts';

type Texts = Readonly<Record<string, string>>;

export interface Template {
  readonly name: string;
  /** Left out: where golden images of the cluster live. */
  readonly namespace?: string | undefined;
  readonly labels: Texts;
  readonly annotations: Texts;
  readonly spec: DataImportCronSpec;
}

/** What cannot be carried out, for the object it stands in. */
export interface Problem {
  /** CamelCase, stable. */
  readonly reason: string;
  readonly message: string;
}

export const templateAnnotations = {
  /** `false`: the template is not wanted. */
  enable: 'dataimportcrontemplate.kubevirt.io/enable',
  /** Architectures the image is there for, separated by commas. */
  architectures: 'ssp.kubevirt.io/dict.architectures',
  immediateBinding: 'cdi.kubevirt.io/storage.bind.immediate.requested',
} as const;

export const templateLabels = {
  architecture: 'template.kubevirt.io/architecture',
  /** On a cron for one architecture: the DataSource that stands for all of them. */
  dataSource: 'cdi.kubevirt.io/storage.import.datasource-name',
} as const;

/** A plain split: order counts, and nothing is taken apart further. `undefined`: the template says nothing. */
export const architecturesOf = ({ annotations }: Template): readonly string[] | undefined =>
  annotations[templateAnnotations.architectures]?.split(',').map((name) => name.trim());

export const withoutArchitectures = (annotations: Texts): Texts =>
  Object.fromEntries(Object.entries(annotations).filter(([key]) => key !== templateAnnotations.architectures));

/** Whether a boot source keeps itself fresh or stays with the volume a user made. Pure; the table of SSP, with the reason for each row. */
export interface BootSourceFacts {
  /** Whether a template feeds it. */
  readonly hasTemplate: boolean;
  readonly exists: boolean;
  /** It carries the label of a cron, with whatever value: its user wants that. */
  readonly hasLabel: boolean;
  /** The golden volume of its name, which a user made. */
  readonly hasVolume: boolean;
  /** A volume of the time before there were architectures, that it stands for now or would at first. */
  readonly keepsFormerVolume: boolean;
}

export interface RefreshDecision {
  readonly isAutomatic: boolean;
  readonly why: string;
}

const automatic = (why: string): RefreshDecision => ({ isAutomatic: true, why });
const manual = (why: string): RefreshDecision => ({ isAutomatic: false, why });

/** In this order; the first that fits. */
export const decide = (facts: BootSourceFacts): RefreshDecision => {
  if (!facts.hasTemplate) return manual('no template feeds it');
  const hasOwn = facts.hasVolume || facts.keepsFormerVolume;
  if (hasOwn && facts.exists && facts.hasLabel) return automatic('it carries the label cdi.kubevirt.io/dataImportCron');
  if (facts.keepsFormerVolume) return manual('the golden volume made before there were architectures is used');
  if (facts.hasVolume)
    return manual('a golden volume of its name exists: label it cdi.kubevirt.io/dataImportCron to opt in');
  return automatic('there is no golden volume of its name');
};
