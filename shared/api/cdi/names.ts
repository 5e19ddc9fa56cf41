// The words of cdi.kubevirt.io on the wire: the labels and annotations its clients read. Keys stay as the original has them.

export const cdiGroup = 'cdi.kubevirt.io';

export const cdiLabels = {
  /** On everything a cron made or manages: the cron's name. */
  cron: `${cdiGroup}/dataImportCron`,
  /** On what goes with its cron. */
  cleanup: `${cdiGroup}/dataImportCron.cleanup`,
} as const;

/** Labels that tell consumers how to run what a golden image holds: the only ones that travel from object to object. */
const travelling = /^instancetype\.kubevirt\.io\/[\w.-]+$|^kubevirt\.io\/dynamic-credentials-support$/;

type Labels = Readonly<Record<string, string>>;

const pick = (labels: Labels | undefined, isWanted: (key: string) => boolean): Labels =>
  Object.fromEntries(Object.entries(labels ?? {}).filter(([key]) => isWanted(key)));

/** What a data source takes over from the volume or snapshot it points to. */
export const travellingLabels = (labels: Labels | undefined): Labels => pick(labels, (key) => travelling.test(key));
