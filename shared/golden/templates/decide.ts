// Whether a boot source keeps itself fresh or stays with the volume a user made. Pure; the table of SSP, with its reason said aloud.

export interface SourceFacts {
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

export interface Decision {
  readonly isAutomatic: boolean;
  readonly why: string;
}

const automatic = (why: string): Decision => ({ isAutomatic: true, why });
const manual = (why: string): Decision => ({ isAutomatic: false, why });

/** In this order; the first that fits. */
export const decide = (facts: SourceFacts): Decision => {
  if (!facts.hasTemplate) return manual('no template feeds it');
  const hasOwn = facts.hasVolume || facts.keepsFormerVolume;
  if (hasOwn && facts.exists && facts.hasLabel) return automatic('it carries the label cdi.kubevirt.io/dataImportCron');
  if (facts.keepsFormerVolume) return manual('the golden volume made before there were architectures is used');
  if (facts.hasVolume)
    return manual('a golden volume of its name exists: label it cdi.kubevirt.io/dataImportCron to opt in');
  return automatic('nobody made a golden volume of its name');
};
