// Display names are free text, and label values are not. The label finds images of one name; the name itself decides.
import { createHash } from 'node:crypto';

const labelValue = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/u;

export const isLabelValue = (text: string): boolean => labelValue.test(text);

/** The name where it can be a label value, else a digest of it. */
export const toDisplayNameLabel = (displayName: string): string =>
  isLabelValue(displayName)
    ? displayName
    : `sha256-${createHash('sha256').update(displayName).digest('hex').slice(0, 48)}`;
