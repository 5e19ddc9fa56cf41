// Tells people which of several places the bytes came from, and why not an earlier one.
import { redact } from '#shared/runtime/redact.ts';

/** `mirror.example/disks, then quay.io/disks (mirror.example/disks: the connection broke)`; `undefined`: nothing was served. */
export type ServedFrom = () => string | undefined;

export interface Served {
  began(place: string): void;
  failed(place: string, message: string): void;
  readonly servedFrom: ServedFrom;
}

/** It is a part of a report, whose size is limited. */
const mostChars = 600;
const mostMessageChars = 150;

export const createServed = (): Served => {
  const places = new Set<string>();
  const faults = new Map<string, string>();
  return {
    began: (place) => void places.add(place),
    failed: (place, message) => void faults.set(place, redact(message).slice(0, mostMessageChars)),
    servedFrom: () => {
      if (places.size === 0) return undefined;
      const failures = [...faults].map(([place, message]) => `${place}: ${message}`).join('; ');
      return `${[...places].join(', then ')}${failures === '' ? '' : ` (${failures})`}`.slice(0, mostChars);
    },
  };
};
