// The values of `spec.backend`. A name here without its line in registry.ts does not compile.

export const backendNames = ['backingimage', 'cdi', 'csi'] as const;
export type BackendName = (typeof backendNames)[number];
