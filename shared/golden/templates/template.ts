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
