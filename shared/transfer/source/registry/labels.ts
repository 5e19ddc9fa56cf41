// Labels that describe how to run a containerDisk, from its environment: `INSTANCETYPE_KUBEVIRT_IO_DEFAULT_PREFERENCE=fedora` becomes the label
// `instancetype.kubevirt.io/default-preference`, as in CDI. Which of them are copied to volumes is decided where volumes are marked. Pure; called
// where an image is read or written.

export type Labels = Readonly<Record<string, string>>;

const marker = 'KUBEVIRT_IO_';

/** More of them would not fit into the report. */
const mostLabels = 16;

const isName = (text: string): boolean => /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/.test(text);
const isValue = (text: string): boolean => /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/.test(text);

const keyOf = (variable: string): string | undefined => {
  const at = variable.indexOf(marker);
  const before = variable
    .slice(0, at)
    .split('_')
    .filter((part) => part !== '');
  const domain = [...before, 'kubevirt', 'io'].join('.').toLowerCase();
  const name = variable
    .slice(at + marker.length)
    .replaceAll('_', '-')
    .toLowerCase();
  return at >= 0 && isName(domain) && isName(name) ? `${domain}/${name}` : undefined;
};

/** Labels from variables; those that are not valid labels are skipped. */
export const labelsOfEnvironment = (variables: readonly string[]): Labels =>
  Object.fromEntries(
    variables
      .flatMap((text) => {
        const [, variable = '', value = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
        const key = keyOf(variable);
        return key === undefined || !isValue(value) ? [] : [[key, value] as const];
      })
      .slice(0, mostLabels),
  );

/** The variables of an image that has these labels; others cannot be written as variables. */
export const environmentOfLabels = (labels: Labels): readonly string[] =>
  Object.entries(labels).flatMap(([key, value]) => {
    const variable = key.replaceAll(/[./-]/g, '_').toUpperCase();
    return keyOf(variable) === key && isValue(value) ? [`${variable}=${value}`] : [];
  });
