declare module 'postject' {
  /** Puts `content` into the executable `file` as the resource `name`. */
  export const inject: (
    file: string,
    name: string,
    content: Buffer,
    options: { readonly sentinelFuse: string; readonly machoSegmentName?: string },
  ) => Promise<void>;
}
